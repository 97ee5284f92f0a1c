#include "sim/base/format.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

namespace ulysim {
namespace {

__extension__ using Wide = unsigned __int128;

struct WholeUnit {
  std::string_view name{};
  std::uint64_t size{1};
};

constexpr std::array<WholeUnit, 11> kBytes{{{"PiB", std::uint64_t{1} << 50},
                                            {"TiB", std::uint64_t{1} << 40},
                                            {"GiB", std::uint64_t{1} << 30},
                                            {"MiB", std::uint64_t{1} << 20},
                                            {"KiB", std::uint64_t{1} << 10},
                                            {"PB", 1'000'000'000'000'000},
                                            {"TB", 1'000'000'000'000},
                                            {"GB", 1'000'000'000},
                                            {"MB", 1'000'000},
                                            {"kB", 1'000},
                                            {"B", 1}}};

constexpr std::array<WholeUnit, 5> kDurations{
    {{"s", 1'000'000'000'000}, {"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1'000}, {"ps", 1}}};

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

/// The shortest "number unit" that is exact with at most three decimals; ties go to the unit named first.
std::string shortest_exact(std::int64_t signed_value, std::span<const WholeUnit> units) {
  constexpr std::uint64_t kThousandths = 1000;
  const std::uint64_t value = magnitude(signed_value);
  std::string best = fmt::format("{}{}", value, units.back().name);
  for (const WholeUnit& unit : units) {
    const Wide scaled = static_cast<Wide>(value) * kThousandths;
    if (value < unit.size || scaled % unit.size != 0) {
      continue;
    }
    const auto thousandths = static_cast<std::uint64_t>(scaled / unit.size % kThousandths);
    std::string text = fmt::format("{}", value / unit.size);
    if (thousandths != 0) {
      text += fmt::format(".{:03}", thousandths);
      text.erase(text.find_last_not_of('0') + 1);
    }
    text += unit.name;
    if (text.size() < best.size()) {
      best = text;
    }
  }
  return (signed_value < 0 ? "-" : "") + best;
}

/// Shortest round-trip digits of a rate with the decimal point moved to a prefix: the move is exact in decimal,
/// and the reader joins prefix and exponent before its one conversion.
std::string exact_rate(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes{"", "k", "M", "G", "T", "P"};
  constexpr int kLargestPower = 18;
  if (!std::isfinite(value) || value <= 0.0) {
    return fmt::format("{}{}", value, unit);
  }
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t mark = text.find('e');
  int exponent = 0;
  const std::size_t sign = text[mark + 1] == '+' ? 2 : 1;
  std::from_chars(text.data() + mark + sign, text.data() + text.size(), exponent);
  if (exponent < 0 || exponent >= kLargestPower) {
    return fmt::format("{}{}", text, unit);
  }
  std::string digits;
  for (const char c : text.substr(0, mark)) {
    if (c != '.') {
      digits += c;
    }
  }
  const auto whole_digits = static_cast<std::size_t>(exponent % 3 + 1);
  if (digits.size() < whole_digits) {
    digits.resize(whole_digits, '0');
  }
  if (digits.size() > whole_digits) {
    digits.insert(whole_digits, 1, '.');
  }
  return fmt::format("{}{}{}", digits, kPrefixes.at(static_cast<std::size_t>(exponent / 3)), unit);
}

/// Three significant digits, four just below the next unit.
std::string three_digits(double value) {
  if (value < 9.995) {
    return fmt::format("{:.2f}", value);
  }
  return value < 99.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

std::string exact(Bytes value) {
  return shortest_exact(value.value(), kBytes);
}
std::string exact(Bandwidth value) {
  return exact_rate(value.value(), "B/s");
}
std::string exact(FlopRate value) {
  return exact_rate(value.value(), "FLOP/s");
}
std::string exact(Duration value) {
  return shortest_exact(value.value(), kDurations);
}

std::string human(Bytes value) {
  constexpr std::array<std::string_view, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  constexpr double kStep = 1024.0;
  const char* sign = value < Bytes(0) ? "-" : "";
  auto amount = static_cast<double>(magnitude(value.value()));
  if (amount < kStep) {
    return fmt::format("{}{:.0f} B", sign, amount);
  }
  std::size_t unit = 0;
  while (amount >= kStep - 0.5 && unit + 1 < kUnits.size()) {
    amount /= kStep;
    ++unit;
  }
  return fmt::format("{}{} {}", sign, three_digits(amount), kUnits.at(unit));
}

std::string human(Duration value) {
  constexpr std::array<std::string_view, 5> kUnits{"ps", "ns", "us", "ms", "s"};
  constexpr double kStep = 1000.0;
  constexpr double kManySeconds = 10'000.0;
  constexpr double kSecondsPerHour = 3600.0;
  const char* sign = value < Duration(0) ? "-" : "";
  auto amount = static_cast<double>(magnitude(value.value()));
  if (amount < kStep) {
    return amount == 0.0 ? "0 s" : fmt::format("{}{:.0f} ps", sign, amount);
  }
  std::size_t unit = 0;
  while (amount >= kStep - 0.5 && unit + 1 < kUnits.size()) {
    amount /= kStep;
    ++unit;
  }
  if (amount >= kManySeconds - 0.5) {
    return fmt::format("{}{} h", sign, three_digits(amount / kSecondsPerHour));
  }
  return fmt::format("{}{} {}", sign, three_digits(amount), kUnits.at(unit));
}

std::string human_count(std::int64_t value) {
  std::string text = fmt::format("{}", magnitude(value));
  for (std::size_t place = text.size(); place > 3; place -= 3) {
    text.insert(place - 3, 1, ',');
  }
  return (value < 0 ? "-" : "") + text;
}

}  // namespace ulysim
