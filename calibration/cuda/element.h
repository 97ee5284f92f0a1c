#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define ULYSIM_ANYWHERE __host__ __device__
#else
#define ULYSIM_ANYWHERE
#endif

namespace ulysim::calibration::cuda {

/// bfloat16 by its bits: the upper half of a float. Ours, because the tests run on the host without CUDA's headers.
struct Bf16 {
  std::uint16_t bits{};
};

ULYSIM_ANYWHERE inline float to_float(Bf16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16U;
  float result = 0.0F;
  memcpy(&result, &bits, sizeof result);
  return result;
}

/// Rounds to nearest, ties to even. Not-a-number stays not a number.
ULYSIM_ANYWHERE inline Bf16 to_bf16(float value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U)};
}

/// The widest access of a GPU thread: eight bf16 or four floats.
struct alignas(16) Vector16 {
  Bf16 element[8]{};
};

struct Floats8 {
  float value[8]{};
};

ULYSIM_ANYWHERE inline Floats8 to_floats(const Vector16& vector) {
  Floats8 floats;
  for (int j = 0; j < 8; ++j) {
    floats.value[j] = to_float(vector.element[j]);
  }
  return floats;
}

ULYSIM_ANYWHERE inline Vector16 to_vector(const Floats8& floats) {
  Vector16 vector;
  for (int j = 0; j < 8; ++j) {
    vector.element[j] = to_bf16(floats.value[j]);
  }
  return vector;
}

/// Division of numbers below 2³¹ by one that is known before the kernel starts, as a product and a shift (Granlund and
/// Montgomery, PLDI 1994): a GPU divides 64-bit numbers in a hundred instructions, more than a memory-bound kernel has.
class Divider {
 public:
  Divider() = default;
  // Implicit: a kernel's parameters are given as numbers.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Divider(std::int64_t divisor) : divisor_(static_cast<std::uint32_t>(divisor)) {
    while ((std::uint64_t{1} << log2_) < divisor_) {
      ++log2_;
    }
    if (divisor_ > 1) {
      multiplier_ = static_cast<std::uint32_t>(((std::uint64_t{1} << (31U + log2_)) + divisor_ - 1U) / divisor_);
    }
  }
  ULYSIM_ANYWHERE [[nodiscard]] std::uint32_t divisor() const { return divisor_; }
  ULYSIM_ANYWHERE [[nodiscard]] std::uint32_t divide(std::uint32_t number) const {
    return divisor_ == 1U ? number
                          : static_cast<std::uint32_t>((std::uint64_t{number} * multiplier_) >> 32U) >> (log2_ - 1U);
  }

 private:
  std::uint32_t divisor_{1};
  std::uint32_t multiplier_{};
  std::uint32_t log2_{};  ///< rounded up
};

}  // namespace ulysim::calibration::cuda
