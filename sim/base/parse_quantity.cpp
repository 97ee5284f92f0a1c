#include "sim/base/parse_quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <system_error>

namespace ulysim {
namespace {

__extension__ using Wide = unsigned __int128;

/// More digits than any honest figure has; the bound keeps mantissa × 2^50 inside 128 bits.
constexpr std::size_t kMostDigits = 22;
constexpr int kMostExponent = 9999;
constexpr std::size_t kMostShown = 60;

/// digits × 10^exponent, exactly as written, and what stands behind the number.
struct Decimal {
  std::string digits{};  ///< without leading zeros; empty is zero
  int exponent{};
  std::string_view rest{};
};

/// One unit is factor × 10^power of the base unit.
struct Unit {
  std::string_view name{};
  std::uint64_t factor{1};
  int power{};
};

constexpr std::array<Unit, 11> kPrefixes{{{"", 1, 0},
                                          {"k", 1, 3},
                                          {"M", 1, 6},
                                          {"G", 1, 9},
                                          {"T", 1, 12},
                                          {"P", 1, 15},
                                          {"Ki", std::uint64_t{1} << 10, 0},
                                          {"Mi", std::uint64_t{1} << 20, 0},
                                          {"Gi", std::uint64_t{1} << 30, 0},
                                          {"Ti", std::uint64_t{1} << 40, 0},
                                          {"Pi", std::uint64_t{1} << 50, 0}}};

constexpr std::array<Unit, 7> kDurations{
    {{"ps", 1, 0}, {"ns", 1, 3}, {"us", 1, 6}, {"ms", 1, 9}, {"s", 1, 12}, {"min", 60, 12}, {"h", 3600, 12}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes digits with single '_' between them off the front; false when there are none or a '_' dangles.
bool take_digits(std::string_view& text, std::string& digits) {
  bool any = false;
  while (!text.empty()) {
    if (is_digit(text.front())) {
      digits += text.front();
      any = true;
      text.remove_prefix(1);
    } else if (any && text.size() > 1 && text[0] == '_' && is_digit(text[1])) {
      text.remove_prefix(1);
    } else {
      break;
    }
  }
  return any;
}

std::optional<Decimal> scan_decimal(std::string_view text) {
  Decimal number;
  std::string digits;
  if (!take_digits(text, digits) || (digits.size() > 1 && digits.front() == '0')) {
    return std::nullopt;  // "010" is ten to some and eight to others
  }
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const std::size_t whole = digits.size();
    if (!take_digits(text, digits)) {
      return std::nullopt;
    }
    number.exponent = -static_cast<int>(std::min<std::size_t>(digits.size() - whole, kMostExponent));
  }
  // 'E' is an exponent only with digits behind it; else it begins the unit.
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    std::string_view tail = text.substr(1);
    const bool negative = !tail.empty() && tail.front() == '-';
    if (negative || (!tail.empty() && tail.front() == '+')) {
      tail.remove_prefix(1);
    }
    if (!tail.empty() && is_digit(tail.front())) {
      int exponent = 0;
      while (!tail.empty() && is_digit(tail.front())) {
        exponent = std::min(kMostExponent, exponent * 10 + (tail.front() - '0'));
        tail.remove_prefix(1);
      }
      number.exponent += negative ? -exponent : exponent;
      text = tail;
    }
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++number.exponent;
  }
  number.digits = std::move(digits);
  number.rest = text;
  return number;
}

/// The unit behind the number: at most one space, then its name.
std::string_view unit_name(const Decimal& number) {
  std::string_view rest = number.rest;
  if (rest.size() > 1 && rest.front() == ' ') {
    rest.remove_prefix(1);
  }
  return rest;
}

template <std::size_t N>
std::optional<Unit> find_unit(const std::array<Unit, N>& units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) {
      return unit;
    }
  }
  return std::nullopt;
}

std::optional<Unit> find_prefixed(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) {
    return std::nullopt;
  }
  name.remove_suffix(suffix.size());
  return find_unit(kPrefixes, name);
}

std::string shown(std::string_view text) {
  return text.size() <= kMostShown ? std::string(text) : std::string(text.substr(0, kMostShown)) + "…";
}

/// What a quantity is called and how it is written, for the sentence of refusal.
struct Expected {
  std::string_view name{};
  std::string_view example{};
};

std::string refusal(std::string_view text, const Expected& expected, std::string_view why = {}) {
  return fmt::format("cannot read '{}' as {} (like {}){}{}", shown(text), expected.name, expected.example,
                     why.empty() ? "" : ": ", why);
}

std::string unit_refusal(std::string_view text, const Expected& expected, const Decimal& number) {
  const std::string_view name = unit_name(number);
  return refusal(text, expected,
                 name.empty() ? std::string("a unit is needed") : fmt::format("unknown unit '{}'", shown(name)));
}

enum class Fraction { refuse, round };

/// The number in base units as an integer, or why it is none.
std::variant<std::int64_t, std::string_view> whole(const Decimal& number, const Unit& unit, Fraction fraction) {
  constexpr auto kMost = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
  if (number.digits.size() > kMostDigits) {
    return "more than 22 digits";
  }
  Wide value = 0;
  for (const char c : number.digits) {
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  value *= unit.factor;
  int power = number.exponent + unit.power;
  if (value == 0) {
    return std::int64_t{0};
  }
  for (; power > 0; --power) {
    if (value > kMost) {
      break;
    }
    value *= 10;
  }
  Wide divisor = 1;
  for (; power < 0; ++power) {
    if (divisor > value * 2) {
      break;  // far below one half already
    }
    divisor *= 10;
  }
  if (value % divisor != 0) {
    if (fraction == Fraction::refuse) {
      return "not a whole number";
    }
    value = (value + divisor / 2) / divisor;
    if (value == 0) {
      return "too small";
    }
  } else {
    value /= divisor;
  }
  if (value > kMost) {
    return "too large";
  }
  return static_cast<std::int64_t>(value);
}

/// The number in base units, correctly rounded: powers of ten join the exponent before the one conversion, powers
/// of two are exact afterwards.
std::optional<double> real(const Decimal& number, const Unit& unit) {
  if (number.digits.empty()) {
    return 0.0;
  }
  const std::string text = fmt::format("{}e{}", number.digits, number.exponent + unit.power);
  double value = 0.0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) {
    return std::nullopt;
  }
  value *= static_cast<double>(unit.factor);
  return value <= std::numeric_limits<double>::max() ? std::optional(value) : std::nullopt;
}

template <class T>
Parsed<T> whole_or_refusal(std::string_view text, const Expected& expected, const Decimal& number, const Unit& unit,
                           Fraction fraction) {
  const auto value = whole(number, unit, fraction);
  if (const auto* why = std::get_if<std::string_view>(&value)) {
    return refusal(text, expected, *why);
  }
  return T(std::get<std::int64_t>(value));
}

}  // namespace

Parsed<Bytes> parse_bytes(std::string_view text) {
  constexpr Expected kExpected{.name = "bytes", .example = "80GiB"};
  const auto number = scan_decimal(text);
  if (!number) {
    return refusal(text, kExpected);
  }
  const auto unit = find_prefixed(unit_name(*number), "B");
  if (!unit) {
    return unit_refusal(text, kExpected, *number);
  }
  return whole_or_refusal<Bytes>(text, kExpected, *number, *unit, Fraction::round);
}

Parsed<Bandwidth> parse_bandwidth(std::string_view text) {
  constexpr Expected kExpected{.name = "a bandwidth", .example = "450GB/s or 400Gb/s"};
  const auto number = scan_decimal(text);
  if (!number) {
    return refusal(text, kExpected);
  }
  const auto bytes = find_prefixed(unit_name(*number), "B/s");
  const auto unit = bytes ? bytes : find_prefixed(unit_name(*number), "b/s");
  if (!unit) {
    return unit_refusal(text, kExpected, *number);
  }
  const auto value = real(*number, *unit);
  if (!value) {
    return refusal(text, kExpected, "out of range");
  }
  constexpr double kBitsPerByte = 8.0;
  return Bandwidth(bytes ? *value : *value / kBitsPerByte);
}

Parsed<FlopRate> parse_flop_rate(std::string_view text) {
  constexpr Expected kExpected{.name = "a FLOP rate", .example = "989TFLOP/s"};
  const auto number = scan_decimal(text);
  if (!number) {
    return refusal(text, kExpected);
  }
  const auto unit = find_prefixed(unit_name(*number), "FLOP/s");
  if (!unit || unit->factor != 1) {
    return unit_refusal(text, kExpected, *number);
  }
  const auto value = real(*number, *unit);
  if (!value) {
    return refusal(text, kExpected, "out of range");
  }
  return FlopRate(*value);
}

Parsed<Duration> parse_duration(std::string_view text) {
  constexpr Expected kExpected{.name = "a duration", .example = "1.2us"};
  const auto number = scan_decimal(text);
  if (!number) {
    return refusal(text, kExpected);
  }
  const auto unit = find_unit(kDurations, unit_name(*number));
  if (!unit) {
    return unit_refusal(text, kExpected, *number);
  }
  return whole_or_refusal<Duration>(text, kExpected, *number, *unit, Fraction::round);
}

Parsed<std::int64_t> parse_count(std::string_view text) {
  constexpr Expected kExpected{.name = "a count", .example = "1048576 or 1Mi"};
  const auto number = scan_decimal(text);
  if (!number) {
    return refusal(text, kExpected);
  }
  const auto unit = find_unit(kPrefixes, number->rest);
  if (!unit || unit->name == "P" || unit->name == "Pi") {
    return refusal(text, kExpected);
  }
  return whole_or_refusal<std::int64_t>(text, kExpected, *number, *unit, Fraction::refuse);
}

Parsed<double> parse_number(std::string_view text) {
  constexpr Expected kExpected{.name = "a number", .example = "0.85"};
  const bool negative = text.starts_with('-');
  const auto number = scan_decimal(negative || text.starts_with('+') ? text.substr(1) : text);
  if (!number || !number->rest.empty() || text.find('_') != std::string_view::npos) {
    return refusal(text, kExpected);
  }
  const auto value = real(*number, Unit{});
  if (!value) {
    return refusal(text, kExpected, "out of range");
  }
  return negative ? -*value : *value;
}

}  // namespace ulysim
