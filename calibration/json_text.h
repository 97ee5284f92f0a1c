#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The JSON that this module prints: built bottom up from texts that are JSON already.
namespace ulysim::calibration {

struct JsonMember {
  std::string name{};
  std::string json{};
};

[[nodiscard]] std::string json_string(std::string_view text);
/// InternalError when it is not finite.
[[nodiscard]] std::string json_number(double value);
[[nodiscard]] std::string json_number(std::int64_t value);

/// null when there is none.
template <class T>
[[nodiscard]] std::string json_or_null(const std::optional<T>& value) {
  return value ? json_number(*value) : "null";
}
[[nodiscard]] std::string json_or_null(const std::optional<std::string>& text);
/// null when it is empty.
[[nodiscard]] std::string json_or_null(const std::string& text);

/// On one line.
[[nodiscard]] std::string json_object(const std::vector<JsonMember>& members);
/// One item a line, `indent` before the closing bracket.
[[nodiscard]] std::string json_list(const std::vector<std::string>& items, std::string_view indent);
[[nodiscard]] std::string json_strings(const std::vector<std::string>& strings);

}  // namespace ulysim::calibration
