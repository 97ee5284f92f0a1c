#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/scenario/scenario.h"

namespace ulysim::study {

/// The sequence lengths among which the longest is looked for: multiples of what every pass divides tokens by
/// (tensor · ulysses · ring, and 2 for zigzag), each of them up to 512 and then 256 to every doubling, as
/// floating-point numbers stand. Beyond 256 units neighbours differ by at most 1/256; long ones are a large power of
/// two times up to 511 tokens a GPU, as kernels like them.
class LegalLengths {
 public:
  /// unit >= 1, longest >= unit.
  LegalLengths(std::int64_t unit, std::int64_t longest);

  /// They are numbered 1 … count().
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::int64_t tokens(std::size_t index) const;
  /// The longest that is not above `tokens`; 0 when all are, count() beyond the last.
  [[nodiscard]] std::size_t index_below(std::int64_t tokens) const;

 private:
  std::int64_t unit_;
  std::size_t count_;
};

/// Those that check() accepts for the plan, by what the degrees divide tokens by, or the smallest power of two times
/// that; of a plan that runs at none, the former.
[[nodiscard]] LegalLengths legal_lengths(const scenario::Scenario& scenario, const scenario::PlanEntry& entry);

}  // namespace ulysim::study
