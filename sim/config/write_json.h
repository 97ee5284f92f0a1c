#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ulysim::config {

/// A value to be written as JSON. The members of an object keep the order in which they were added; an empty optional
/// is null. InternalError for a number that is not finite: that is our bug, and JSON has no word for it.
class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(double value);
  template <std::integral T>
  Json(T value) : value_(static_cast<std::int64_t>(value)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}
  template <class T>
  Json(const std::vector<T>& values) : value_(Items(values.begin(), values.end())) {}

  [[nodiscard]] static Json object(std::initializer_list<Member> members = {});
  [[nodiscard]] static Json array();

  /// Requires an object. A new member is null and comes last.
  Json& operator[](std::string_view key);
  /// Requires an array.
  void push_back(Json item);

 private:
  using Items = std::vector<Json>;
  using Members = std::vector<Member>;
  friend class JsonText;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Items, Members> value_{};
};

enum class JsonLayout : std::uint8_t {
  indented,  ///< by two blanks, for people and for line-wise tools
  compact,   ///< on one line
};

/// UTF-8 without a newline at its end; doubles as the shortest text that reads back to the same value, and always
/// with a point or an exponent. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string write_json(const Json& value, JsonLayout layout);

/// Text in quotes, escaped.
[[nodiscard]] std::string json_string(const std::string& text);

}  // namespace ulysim::config
