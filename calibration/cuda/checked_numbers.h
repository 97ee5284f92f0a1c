#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibration/cuda/element.h"

namespace ulysim::calibration::cuda {

/// Whole numbers that a check of a collective sends: below `modulus()`.
class CheckedNumbers {
 public:
  /// Numbers that are only moved.
  CheckedNumbers() = default;
  /// Numbers of `world` ranks that are added up, in any order and with every sum on the way rounded to bf16: whole
  /// numbers are exact there up to 256. Requires at most 256 ranks to be exact.
  explicit CheckedNumbers(int world) : modulus_(std::clamp<std::int64_t>(kExact / world + 1, 2, kPrime)) {}

  [[nodiscard]] std::int64_t modulus() const { return modulus_; }
  /// Element `i` of what `rank` sends. Those of other ranks and of the next elements differ.
  [[nodiscard]] float sent(int rank, std::int64_t i) const {
    return static_cast<float>((std::int64_t{rank} * 5 + i) % modulus_);
  }

 private:
  static constexpr std::int64_t kExact = 256;
  static constexpr std::int64_t kPrime = 31;
  std::int64_t modulus_{kPrime};
};

/// Bits that differ from element to element (Knuth's multiplicative hash), so that a wrong place shows.
inline std::vector<Vector16> numbered_vectors(std::int64_t vectors) {
  std::vector<Vector16> values(static_cast<std::size_t>(vectors));
  std::uint32_t next = 0;
  for (Vector16& vector : values) {
    for (Bf16& element : vector.element) {
      element.bits = static_cast<std::uint16_t>(next++ * 40503U);
    }
  }
  return values;
}

}  // namespace ulysim::calibration::cuda
