#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"

namespace ulysim::config {

/// One line of a mapping. A template only because Node holds entries and an entry holds a Node: clang looks into
/// the vector's element while Node is being defined, and finds it complete this way.
template <class Value>
struct EntryOf {
  std::string key{};
  Location where{};
  Value value{};
};
struct Node;
using Entry = EntryOf<Node>;

/// A read document: a tree of text with marks. Scalars stay text; `Mapping` reads them with our own grammar.
struct Node {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind{Kind::null};
  Location where{};
  std::string text{};            ///< scalar text as written (JSON strings unescaped)
  bool quoted{};                 ///< a quoted scalar is text, never a number or a boolean
  std::vector<Node> items{};     ///< of a sequence
  std::vector<Entry> entries{};  ///< of a mapping, in file order, keys unique

  /// The value of `key`, or nullptr; also when this is no mapping.
  [[nodiscard]] const Node* find(std::string_view key) const;
};

/// Refused, each with file:line:column: syntax errors, duplicate keys, tags, `<<`, a second document, invalid
/// UTF-8, control characters, depth over 64, over 100,000 nodes after alias expansion (JSON: 1,000,000, since saved
/// results hold timelines), a file over 64 MiB.
/// `file` is the name used in messages. Throws InputError with everything found.
[[nodiscard]] Node parse_yaml(std::string_view text, const std::string& file);
[[nodiscard]] Node parse_json(std::string_view text, const std::string& file);

/// Reads a file: `.json` as JSON, anything else as YAML. InputError when it cannot be read
/// (missing, a directory, unreadable, a device that never ends).
[[nodiscard]] Node load_file(const std::filesystem::path& path);
/// The same of a file that holds JSON, whatever it is called.
[[nodiscard]] Node load_json_file(const std::filesystem::path& path);

}  // namespace ulysim::config
