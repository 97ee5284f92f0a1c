#include "calibration/samples/rank_estimate.h"

#include <algorithm>
#include <cmath>

namespace ulysim::calibration {

Ratio ratio_of(const Printed& busbw, const Printed& algbw) {
  const double low = std::max(busbw.value - busbw.half, 0.0) / (algbw.value + algbw.half);
  const double high = algbw.value > algbw.half ? (busbw.value + busbw.half) / (algbw.value - algbw.half) : 1e300;
  return {.low = low, .high = high};
}

std::optional<RankEstimate> ranks_from(const Ratio& ratio) {
  // 2(n−1)/n = r, so n = 2/(2−r).
  if (ratio.low > ratio.high || ratio.low >= 2.0 || ratio.high >= 2.0 || ratio.low < 0.5) {
    return std::nullopt;
  }
  const double most = 2.0 / (2.0 - ratio.high);
  if (most > 1e7) {
    return std::nullopt;
  }
  RankEstimate out{.low = static_cast<std::int64_t>(std::ceil(2.0 / (2.0 - ratio.low) - 1e-9)),
                   .high = static_cast<std::int64_t>(std::floor(most + 1e-9))};
  if (out.low > out.high || static_cast<double>(out.high) > 1.25 * static_cast<double>(out.low)) {
    return std::nullopt;
  }
  for (std::int64_t power = std::int64_t{1} << 24; power >= 1; power /= 2) {
    const std::int64_t multiple = out.high / power * power;
    if (multiple >= out.low && multiple > 0) {
      out.ranks = multiple;
      return out;
    }
  }
  return std::nullopt;
}

}  // namespace ulysim::calibration
