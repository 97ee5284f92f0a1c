#pragma once

#include <cstdint>
#include <vector>

#include "calibration/host/kernels.h"

namespace ulysim::calibration::host {

enum class Tensor : std::uint8_t { queries, keys, values, out_gradient, other };

/// The element of a seeded input, in [-1, 1): the same on every rank, so that each makes its own part.
[[nodiscard]] float input_element(Tensor tensor, std::int64_t token, std::int64_t element);

/// `count` tokens from `position` on, [token][width].
void fill_input(Tensor tensor, std::int64_t position, std::int64_t count, std::int64_t width, float* out);

struct ReferenceAttention {
  std::vector<double> out{};               ///< [token][head][head_dim]
  std::vector<double> queries_gradient{};  ///< as out
  std::vector<double> keys_gradient{};     ///< [token][kv head][head_dim]
  std::vector<double> values_gradient{};
};

/// The definition, in double, all scores at once: softmax(Q·Kᵀ/√d)·V of the seeded inputs and its gradients for the
/// seeded output gradient. Memory and time grow with tokens².
[[nodiscard]] ReferenceAttention reference_attention(const HeadShape& shape, std::int64_t tokens);

/// Sums for ‖result − reference‖ / ‖reference‖, which ranks add up.
struct ErrorNorm {
  double difference{};  ///< sum of squares
  double reference{};   ///< sum of squares
};

/// Of `count` tokens of a result against those from `position` on in the reference.
[[nodiscard]] ErrorNorm error_norm(const float* result, const std::vector<double>& reference, std::int64_t position,
                                   std::int64_t count, std::int64_t width);
ErrorNorm& operator+=(ErrorNorm& sum, const ErrorNorm& part);
[[nodiscard]] double relative_error(const ErrorNorm& norm);

}  // namespace ulysim::calibration::host
