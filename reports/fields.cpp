#include "reports/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ulysim::reports {
namespace {

constexpr double kMostGib = 4.0 * 1024.0 * 1024.0;  // 2^52 bytes

}  // namespace

double before_division(double quotient, double divisor) {
  const double product = quotient * divisor;
  constexpr double kFar = std::numeric_limits<double>::infinity();
  for (const double candidate : {product, std::nextafter(product, -kFar), std::nextafter(product, kFar)}) {
    if (candidate / divisor == quotient) {
      return candidate;
    }
  }
  return product;
}

Duration read_seconds(const config::Node& node, std::string_view path, Diagnostics& diagnostics) {
  const double value = config::read<double>(node, path, diagnostics).value_or(0.0);
  if (!(value >= 0.0 && value <= kLongestSeconds)) {
    diagnostics.error(node.where, fmt::format("'{}': {} is outside 0 to {} seconds", path, value, kLongestSeconds));
    return Duration{};
  }
  return Duration(std::llround(before_division(value, kPicosecondsPerSecond)));
}

Bytes read_gib(const config::Node& node, std::string_view path, Diagnostics& diagnostics) {
  const double value = config::read<double>(node, path, diagnostics).value_or(0.0);
  if (!(value >= 0.0 && value <= kMostGib)) {
    diagnostics.error(node.where, fmt::format("'{}': {} is outside 0 to {} GiB", path, value, kMostGib));
    return Bytes{};
  }
  return Bytes(std::llround(value * static_cast<double>(std::int64_t{1} << 30)));  // exact: a power of two
}

Duration Fields::seconds(std::string_view key) {
  const config::Node* value = mapping_.find(key);
  return value == nullptr ? Duration(missing(key)) : read_seconds(*value, mapping_.path_of(key), diagnostics());
}

Bytes Fields::gib(std::string_view key) {
  const config::Node* value = mapping_.find(key);
  return value == nullptr ? Bytes(missing(key)) : read_gib(*value, mapping_.path_of(key), diagnostics());
}

std::int64_t Fields::missing(std::string_view key) {
  static_cast<void>(mapping_.required<double>(key));  // says so
  return 0;
}

std::uint32_t Fields::index(std::string_view key, std::size_t size) {
  const std::int64_t value = count(key);
  if (value < 0 || static_cast<std::size_t>(value) >= size) {
    error(key, fmt::format("{} is no index of a list of {}", value, size));
    return 0;
  }
  return static_cast<std::uint32_t>(value);
}

std::size_t Fields::word(std::string_view key, const std::vector<std::string>& words) {
  return has(key) ? mapping_.choice(key, words, 0) : static_cast<std::size_t>(missing(key));
}

Fields Fields::object(std::string_view key) {
  const config::Node* value = mapping_.find(key);
  if (value == nullptr) {
    static_cast<void>(missing(key));
    diagnostics().throw_if_any();
  }
  return {*value, mapping_.path_of(key), diagnostics()};
}

}  // namespace ulysim::reports
