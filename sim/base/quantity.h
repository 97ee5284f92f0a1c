#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "sim/base/check.h"

namespace ulysim {

/// A number with a kind. Only same-kind arithmetic and the physical laws below compile; a bare number
/// never turns into a quantity by itself. `Rep` is int64 where books must balance (bytes, picoseconds)
/// and double where they need not (FLOPs, rates).
template <class Kind, class Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator/(Quantity a, Rep divisor) { return Quantity(a.value_ / divisor); }
  /// The ratio of two quantities of one kind is a number.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }
  // Written by hand: g++ 12's defaulted <=> on double costs instructions in hot loops.
  friend constexpr bool operator==(Quantity a, Quantity b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Quantity a, Quantity b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.value_ < b.value_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.value_ > b.value_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.value_ >= b.value_; }

 private:
  Rep value_{};
};

struct BytesKind {};
struct FlopsKind {};
struct DurationKind {};
struct BandwidthKind {};
struct FlopRateKind {};

using Bytes = Quantity<BytesKind, std::int64_t>;        ///< bytes
using Flops = Quantity<FlopsKind, double>;              ///< floating-point operations
using Duration = Quantity<DurationKind, std::int64_t>;  ///< picoseconds; 106 days fit
using Bandwidth = Quantity<BandwidthKind, double>;      ///< bytes per second
using FlopRate = Quantity<FlopRateKind, double>;        ///< floating-point operations per second

inline constexpr double kPicosecondsPerSecond = 1e12;
/// No single duration may exceed 100 days, so that sums stay far from the int64 limit.
inline constexpr double kLongestSeconds = 100.0 * 86400.0;

/// An instant of the simulated step: picoseconds since its begin. Instants only move by durations; RangeError when the
/// sum does not fit.
class Instant {
 public:
  constexpr Instant() = default;
  constexpr explicit Instant(std::int64_t picoseconds) : value_(picoseconds) {}
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }

  friend Instant operator+(Instant t, Duration d) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(t.value_, d.value(), &sum)) [[unlikely]] {
      throw RangeError("the step takes more than 106 days, which is as far as its clock reaches");
    }
    return Instant(sum);
  }
  friend constexpr Duration operator-(Instant a, Instant b) { return Duration(a.value_ - b.value_); }
  friend constexpr bool operator==(Instant a, Instant b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Instant a, Instant b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Instant a, Instant b) { return a.value_ < b.value_; }
  friend constexpr bool operator>(Instant a, Instant b) { return a.value_ > b.value_; }
  friend constexpr bool operator<=(Instant a, Instant b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>=(Instant a, Instant b) { return a.value_ >= b.value_; }

 private:
  std::int64_t value_{};
};

/// Seconds to picoseconds, rounded up so that finite work never takes no time.
/// Throws RangeError naming `what` when `seconds` is not in [0, 100 days].
[[nodiscard]] Duration duration_from_seconds(double seconds, std::string_view what);

/// How long `bytes` take at `rate`; RangeError naming `what` for a rate <= 0 or a result over 100 days.
[[nodiscard]] Duration transfer_time(Bytes bytes, Bandwidth rate, std::string_view what);

/// How long `flops` take at `rate`; RangeError as above.
[[nodiscard]] Duration compute_time(Flops flops, FlopRate rate, std::string_view what);

[[nodiscard]] constexpr double seconds(Duration d) {
  return static_cast<double>(d.value()) / kPicosecondsPerSecond;
}
[[nodiscard]] constexpr double gibibytes(Bytes b) {
  return static_cast<double>(b.value()) / static_cast<double>(std::int64_t{1} << 30);
}

}  // namespace ulysim
