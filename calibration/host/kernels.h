#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calibration/backend.h"

namespace ulysim::calibration::host {

/// Heads of an attention. Tokens lie as [token][head][head_dim], float32; query head h reads K and V head
/// h / (heads / kv_heads).
struct HeadShape {
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};
  Mask mask{Mask::full};
  [[nodiscard]] std::int64_t query_width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return kv_heads * head_dim; }
};

/// Consecutive tokens of a tensor; `position` is the first one's place in the whole sequence.
struct ConstTokens {
  const float* data{};
  std::int64_t count{};
  std::int64_t position{};
};

struct Tokens {
  float* data{};
  std::int64_t count{};
  std::int64_t position{};
};

/// Online softmax of some query tokens (Milakov and Gimelshein, arXiv 1805.02867): what the keys seen so far add up to,
/// relative to the largest score seen so far. Blocks of keys may come in any order.
struct SoftmaxState {
  std::span<float> largest{};  ///< [head][token]; log-sum-exp after `finish_forward`
  std::span<float> sum{};      ///< [head][token]
};

/// Clears `out` and the state.
void start_forward(const HeadShape& shape, Tokens out, SoftmaxState state);
/// Merges the keys into `out` and the state. Tiles of 64 queries by 128 keys (FlashAttention-2, arXiv 2307.08691,
/// algorithm 1); tiles that the mask hides whole are not computed.
void attention_forward(const HeadShape& shape, ConstTokens queries, ConstTokens keys, ConstTokens values, Tokens out,
                       SoftmaxState state);
/// Divides `out` by the sums and turns `largest` into the log-sum-exp that the backward reads.
void finish_forward(const HeadShape& shape, Tokens out, SoftmaxState state);

/// delta[head][token] = sum over the head of out · out_gradient (arXiv 2307.08691, algorithm 2).
void row_delta(const HeadShape& shape, ConstTokens out, ConstTokens out_gradient, std::span<float> delta);

struct BackwardInput {
  ConstTokens queries{};
  ConstTokens keys{};
  ConstTokens values{};
  ConstTokens out_gradient{};
  std::span<const float> log_sum_exp{};  ///< [head][query token], over all keys of the sequence
  std::span<const float> delta{};        ///< [head][query token]
};

struct Gradients {
  float* queries{};
  float* keys{};
  float* values{};
};

/// Adds what these queries and keys do to each other to the gradients.
void attention_backward(const HeadShape& shape, const BackwardInput& input, Gradients gradients);

/// c = a · b, row-major [m,k] · [k,n].
void gemm(const GemmProbe& size, const float* a, const float* b, float* c);

/// Scores computed (queries times keys of the tiles that are not hidden whole), per head: the work of both directions.
[[nodiscard]] std::int64_t computed_pairs(const HeadShape& shape, ConstTokens queries, ConstTokens keys);

}  // namespace ulysim::calibration::host
