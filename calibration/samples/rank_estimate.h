#pragma once

#include <cstdint>
#include <optional>

#include "calibration/samples/text.h"

namespace ulysim::calibration {

/// What a row's two bandwidths allow their ratio to be.
struct Ratio {
  double low{};
  double high{};
};
[[nodiscard]] Ratio ratio_of(const Printed& busbw, const Printed& algbw);

/// Bus bandwidth over algorithm bandwidth of an all-reduce, as ranks: the interval that all rows allow, and the number
/// in it that is divisible by the highest power of two. Absent when the rows contradict each other or leave more than
/// a quarter open.
struct RankEstimate {
  std::int64_t ranks{};
  std::int64_t low{};
  std::int64_t high{};
};
[[nodiscard]] std::optional<RankEstimate> ranks_from(const Ratio& ratio);

}  // namespace ulysim::calibration
