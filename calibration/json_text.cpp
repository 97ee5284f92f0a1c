#include "calibration/json_text.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/check.h"
#include "sim/config/write_json.h"

namespace ulysim::calibration {

std::string json_string(std::string_view text) {
  std::string out;
  for (const char c : config::json_string(std::string(text))) {
    out += c == '\x7F' ? std::string("\\u007f") : std::string(1, c);  // no reader of ours takes it as it is
  }
  return out;
}

std::string json_number(double value) {
  ULYSIM_CHECK(std::isfinite(value), "a number for JSON is not finite: {}", value);
  return fmt::format("{}", value);
}
std::string json_number(std::int64_t value) {
  return fmt::to_string(value);
}

std::string json_or_null(const std::optional<std::string>& text) {
  return text ? json_string(*text) : "null";
}
std::string json_or_null(const std::string& text) {
  return text.empty() ? "null" : json_string(text);
}

std::string json_object(const std::vector<JsonMember>& members) {
  std::vector<std::string> parts;
  parts.reserve(members.size());
  for (const JsonMember& one : members) {
    parts.push_back(fmt::format("{}: {}", json_string(one.name), one.json));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::string json_list(const std::vector<std::string>& items, std::string_view indent) {
  if (items.empty()) {
    return "[]";
  }
  return fmt::format("[\n{0}  {1}\n{0}]", indent, fmt::join(items, fmt::format(",\n{}  ", indent)));
}

std::string json_strings(const std::vector<std::string>& strings) {
  std::vector<std::string> items;
  items.reserve(strings.size());
  for (const std::string& text : strings) {
    items.push_back(json_string(text));
  }
  return fmt::format("[{}]", fmt::join(items, ", "));
}

}  // namespace ulysim::calibration
