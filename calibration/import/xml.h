#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ulysim::calibration {

struct XmlAttribute {
  std::string name{};
  std::string value{};  ///< the five named entities replaced
};

struct XmlElement {
  std::string name{};
  int line{};
  std::vector<XmlAttribute> attributes{};
  std::vector<XmlElement> children{};

  /// Empty when there is none.
  [[nodiscard]] std::string_view attribute(std::string_view key) const;
};

/// Elements and attributes, which is all that a topology file has: comments and declarations are passed over, text
/// between elements too. Refused with file:line: what is not well formed, doctypes (and with them entities that blow
/// up), depth over 64, over 100,000 elements. Throws InputError.
[[nodiscard]] XmlElement parse_xml(std::string_view text, const std::string& file);

}  // namespace ulysim::calibration
