#include "sim/base/quantity.h"

#include <cmath>

#include "sim/base/format.h"

namespace ulysim {
namespace {

constexpr double kLongestPicoseconds = kLongestSeconds * kPicosecondsPerSecond;

}  // namespace

// The product work × 10^12 comes before the division: it is exact for sizes with a short odd part (powers of two
// above all), so that 4096 B at 50 GB/s is 81,920 ps and not a rounding error more.
Duration duration_from_seconds(double seconds, std::string_view what) {
  if (!(seconds >= 0.0 && seconds <= kLongestSeconds)) {
    throw RangeError(fmt::format("{}: a time of {} s is outside 0 to 100 days", what, seconds));
  }
  return Duration(static_cast<std::int64_t>(std::ceil(seconds * kPicosecondsPerSecond)));
}

Duration transfer_time(Bytes bytes, Bandwidth rate, std::string_view what) {
  ULYSIM_CHECK(bytes.value() >= 0, "{}: a transfer of {} bytes", what, bytes.value());
  if (!(rate.value() > 0.0)) {
    throw RangeError(fmt::format("{}: a bandwidth of {} B/s is not above zero", what, rate.value()));
  }
  const double picoseconds = static_cast<double>(bytes.value()) * kPicosecondsPerSecond / rate.value();
  if (!(picoseconds <= kLongestPicoseconds)) {
    throw RangeError(fmt::format("{}: {} at {} B/s take longer than 100 days", what, human(bytes), rate.value()));
  }
  return Duration(static_cast<std::int64_t>(std::ceil(picoseconds)));
}

Duration compute_time(Flops flops, FlopRate rate, std::string_view what) {
  ULYSIM_CHECK(flops.value() >= 0.0, "{}: {} FLOPs", what, flops.value());
  if (!(rate.value() > 0.0)) {
    throw RangeError(fmt::format("{}: a rate of {} FLOP/s is not above zero", what, rate.value()));
  }
  const double picoseconds = flops.value() * kPicosecondsPerSecond / rate.value();
  if (!(picoseconds <= kLongestPicoseconds)) {
    throw RangeError(
        fmt::format("{}: {} FLOP at {} FLOP/s take longer than 100 days", what, flops.value(), rate.value()));
  }
  return Duration(static_cast<std::int64_t>(std::ceil(picoseconds)));
}

}  // namespace ulysim
