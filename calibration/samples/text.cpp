#include "calibration/samples/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace ulysim::calibration {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

struct ElementType {
  std::string_view name{};
  std::int64_t bytes{};
};
constexpr std::array<ElementType, 24> kTypes{{
    {"int8", 1},    {"char", 1},    {"uint8", 1},    {"byte", 1},   {"bool", 1},          {"int32", 4},
    {"int", 4},     {"uint32", 4},  {"int64", 8},    {"uint64", 8}, {"long", 8},          {"short", 2},
    {"half", 2},    {"float16", 2}, {"bfloat16", 2}, {"float", 4},  {"float32", 4},       {"double", 8},
    {"float64", 8}, {"f8e4m3", 1},  {"f8e5m2", 1},   {"fp8", 1},    {"float8_e4m3fn", 1}, {"float8_e5m2", 1},
}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    lines.push_back({.number = ++number, .text = line});
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t begin = line.find_first_not_of(kBlanks); begin != std::string_view::npos;
       begin = line.find_first_not_of(kBlanks, begin)) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  std::size_t begin = 0;
  for (std::size_t end = line.find(separator); end != std::string_view::npos; end = line.find(separator, begin)) {
    cells.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  cells.push_back(trimmed(line.substr(begin)));
  return cells;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

std::optional<Printed> printed_number(std::string_view text) {
  // from_chars would also take "inf", "nan" and a sign.
  if (text.empty() || !is_digit(text.front()) || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
    return std::nullopt;
  }
  Printed number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number.value)) {
    return std::nullopt;
  }
  const std::size_t e = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, e);
  const std::size_t point = digits.find('.');
  std::string unit = "0.5";
  if (point != std::string_view::npos && point + 1 < digits.size()) {
    unit = "0." + std::string(digits.size() - point - 1, '0') + "5";
  }
  if (e != std::string_view::npos) {
    unit += text.substr(e);
  }
  // Out of range means as good as exact.
  static_cast<void>(std::from_chars(unit.data(), unit.data() + unit.size(), number.half));
  return number;
}

std::optional<std::int64_t> element_bytes(std::string_view type) {
  if (const std::size_t scope = type.rfind("::"); scope != std::string_view::npos) {
    type.remove_prefix(scope + 2);
  }
  std::string lower(type);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& known) { return known.name == lower; });
  return found == kTypes.end() ? std::nullopt : std::optional(found->bytes);
}

std::string printable(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte >= 0x7F ? '?' : c;
  }
  return out;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  return printable(text.substr(0, kMost)) + (text.size() > kMost ? "…" : "");
}

}  // namespace ulysim::calibration
