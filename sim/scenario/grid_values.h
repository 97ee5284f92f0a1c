#pragma once

#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/config/document.h"

namespace ulysim::scenario {

struct NamedValue {
  std::string name{};
  config::Node value{};
};

/// The values of an axis: a list; a mapping of names to values; or a range `{from, to, step}` or `{from, to, factor}`
/// of counts ("32Ki") or of numbers with one unit ("100Gb/s"), both ends included where they are met. Of a range at
/// most `most` are made; one with more is a mistake that names their number. Mistakes go to `diagnostics`.
[[nodiscard]] std::vector<NamedValue> axis_values(const config::Node& node, const std::string& path, std::size_t most,
                                                  Diagnostics& diagnostics);

/// A node as one line of YAML, quoted where it was.
[[nodiscard]] std::string flow_text(const config::Node& node);
/// The same without quotes around a single value, and a count as digits ("1Mi" is 1048576).
[[nodiscard]] std::string value_name(const config::Node& node);

}  // namespace ulysim::scenario
