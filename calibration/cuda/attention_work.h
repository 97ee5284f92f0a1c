#pragma once

#include <cmath>
#include <cstdint>

#include "calibration/cuda/element.h"

namespace ulysim::calibration::cuda {

/// Top-left aligned: query i sees keys 0…i. Blocks with a causal mask have as many queries as keys.
enum class Mask : std::uint8_t { full, causal };

struct BlockShape {
  std::int64_t queries{};
  std::int64_t keys{};
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};
  Mask mask{};
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

constexpr std::int64_t kMostHeadDim = 256;

/// Adds a block's result to the running one: out = Σ exp(lse_block − lse)·out_block (ring attention, arXiv:2310.01889;
/// FlashAttention-2, arXiv:2307.08691, section 3.1). Reads the running statistics, so it comes before MergeStats.
/// Statistics are [heads][rows], natural logarithms.
struct MergeOut {
  float* out{};                 ///< [all_rows][heads][head_dim]
  const float* stats{};         ///< [heads][all_rows]
  const Vector16* block_out{};  ///< [rows][heads][head_dim]
  const float* block_stats{};   ///< [heads][rows]
  std::int64_t all_rows{};
  std::int64_t row_begin{};
  std::int64_t rows{};
  Divider heads{};
  Divider vectors{};  ///< per head: head_dim / 8

  /// One item is eight elements; fewer than 2³¹ items.
  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return rows * heads.divisor() * vectors.divisor(); }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const {
    const std::uint32_t all_heads = vectors.divide(static_cast<std::uint32_t>(i));
    const std::uint32_t row = heads.divide(all_heads);
    const std::uint32_t head = all_heads - row * heads.divisor();
    const float before = stats[head * all_rows + row_begin + row];
    const float block = block_stats[head * rows + row];
    const float most = before > block ? before : block;
    const float weight_before = expf(before - most);
    const float weight_block = expf(block - most);
    const float norm = 1.0F / (weight_before + weight_block);
    const Floats8 added = to_floats(block_out[i]);
    float* const sum = out + (row_begin * heads.divisor() * vectors.divisor() + i) * 8;
    for (int j = 0; j < 8; ++j) {
      sum[j] = (weight_before * sum[j] + weight_block * added.value[j]) * norm;
    }
  }
};

/// Rows row_begin… of the statistics of all rows, [heads][all_rows]; a block has its own, [heads][rows].
struct BlockRows {
  std::int64_t all_rows{};
  std::int64_t row_begin{};
  std::int64_t rows{};
  std::int64_t heads{};

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return rows * heads; }
  /// Of the block's element `i`, among all.
  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t among_all(std::int64_t i) const {
    return i / rows * all_rows + row_begin + i % rows;
  }
};

struct MergeStats {
  float* stats{};
  const float* block_stats{};
  BlockRows rows{};

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return rows.size(); }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const {
    float& before = stats[rows.among_all(i)];
    const float block = block_stats[i];
    const float most = before > block ? before : block;
    before = most + logf(expf(before - most) + expf(block - most));
  }
};

/// The block's part of the statistics, as a kernel over these queries wants them.
struct SliceStats {
  const float* stats{};
  float* block_stats{};
  BlockRows rows{};

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return rows.size(); }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const { block_stats[i] = stats[rows.among_all(i)]; }
};

/// The referee: plain attention in fp32, one thread a row, without tiles. It is to be right, not fast.
struct ReferenceForward {
  BlockShape shape{};
  const Bf16* q{};
  const Bf16* k{};
  const Bf16* v{};
  Bf16* out{};
  float* stats{};  ///< [heads][queries]

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return shape.queries * shape.heads; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const;
};

/// delta = Σ out·d_out of every row, [heads][queries].
struct ReferenceDelta {
  BlockShape shape{};
  const Bf16* out{};
  const Bf16* d_out{};
  float* delta{};

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return shape.queries * shape.heads; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const;
};

/// What both gradients are made of.
struct ReferenceInputs {
  BlockShape shape{};
  const Bf16* q{};
  const Bf16* k{};
  const Bf16* v{};
  const Bf16* d_out{};
  const float* stats{};
  const float* delta{};
};

struct ReferenceQueryGradient {
  ReferenceInputs of{};
  Bf16* dq{};

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return of.shape.queries * of.shape.heads; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const;
};

struct ReferenceKeyGradient {
  ReferenceInputs of{};
  Bf16* dk{};
  Bf16* dv{};

  ULYSIM_ANYWHERE [[nodiscard]] std::int64_t size() const { return of.shape.keys * of.shape.kv_heads; }
  ULYSIM_ANYWHERE void operator()(std::int64_t i) const;
};

ULYSIM_ANYWHERE inline float dot(const Bf16* a, const Bf16* b, std::int64_t n) {
  float sum = 0.0F;
  for (std::int64_t j = 0; j < n; ++j) {
    sum += to_float(a[j]) * to_float(b[j]);
  }
  return sum;
}

/// A row of a head of the queries, and what it sees.
struct ReferenceRow {
  ULYSIM_ANYWHERE ReferenceRow(const BlockShape& shape, std::int64_t i)
      : kv_head(i % shape.heads * shape.kv_heads / shape.heads),
        seen(shape.mask == Mask::causal ? i / shape.heads + 1 : shape.keys),
        statistic(i % shape.heads * shape.queries + i / shape.heads) {}
  std::int64_t kv_head;
  std::int64_t seen;       ///< keys, from the first
  std::int64_t statistic;  ///< its place in [heads][queries]
};

ULYSIM_ANYWHERE inline float score_scale(const BlockShape& shape) {
  return 1.0F / sqrtf(static_cast<float>(shape.head_dim));
}

ULYSIM_ANYWHERE inline void ReferenceForward::operator()(std::int64_t i) const {
  const std::int64_t d = shape.head_dim;
  const ReferenceRow row(shape, i);
  const float scale = score_scale(shape);
  float most = -INFINITY;
  float sum = 0.0F;
  float value[kMostHeadDim] = {};
  for (std::int64_t key = 0; key < row.seen; ++key) {
    const std::int64_t at = (key * shape.kv_heads + row.kv_head) * d;
    const float score = scale * dot(q + i * d, k + at, d);
    const float next = score > most ? score : most;
    const float shrink = expf(most - next);
    const float weight = expf(score - next);
    most = next;
    sum = sum * shrink + weight;
    for (std::int64_t j = 0; j < d; ++j) {
      value[j] = value[j] * shrink + weight * to_float(v[at + j]);
    }
  }
  for (std::int64_t j = 0; j < d; ++j) {
    out[i * d + j] = to_bf16(value[j] / sum);
  }
  stats[row.statistic] = most + logf(sum);
}

ULYSIM_ANYWHERE inline void ReferenceDelta::operator()(std::int64_t i) const {
  delta[ReferenceRow(shape, i).statistic] = dot(out + i * shape.head_dim, d_out + i * shape.head_dim, shape.head_dim);
}

/// An element of P and of the gradient of the scores, of the query and the key that begin at these elements.
struct ReferencePair {
  ULYSIM_ANYWHERE ReferencePair(const ReferenceInputs& of, std::int64_t query_at, std::int64_t key_at,
                                std::int64_t statistic) {
    const std::int64_t d = of.shape.head_dim;
    const float scale = score_scale(of.shape);
    p = expf(scale * dot(of.q + query_at, of.k + key_at, d) - of.stats[statistic]);
    ds = scale * p * (dot(of.d_out + query_at, of.v + key_at, d) - of.delta[statistic]);
  }
  float p;
  float ds;
};

ULYSIM_ANYWHERE inline void ReferenceQueryGradient::operator()(std::int64_t i) const {
  const std::int64_t d = of.shape.head_dim;
  const ReferenceRow row(of.shape, i);
  float gradient[kMostHeadDim] = {};
  for (std::int64_t key = 0; key < row.seen; ++key) {
    const std::int64_t at = (key * of.shape.kv_heads + row.kv_head) * d;
    const ReferencePair pair(of, i * d, at, row.statistic);
    for (std::int64_t j = 0; j < d; ++j) {
      gradient[j] += pair.ds * to_float(of.k[at + j]);
    }
  }
  for (std::int64_t j = 0; j < d; ++j) {
    dq[i * d + j] = to_bf16(gradient[j]);
  }
}

ULYSIM_ANYWHERE inline void ReferenceKeyGradient::operator()(std::int64_t i) const {
  const std::int64_t d = of.shape.head_dim;
  const std::int64_t kv_head = i % of.shape.kv_heads;
  const std::int64_t key = i / of.shape.kv_heads;
  const std::int64_t group = of.shape.heads / of.shape.kv_heads;
  float gradient_k[kMostHeadDim] = {};
  float gradient_v[kMostHeadDim] = {};
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (std::int64_t row = of.shape.mask == Mask::causal ? key : 0; row < of.shape.queries; ++row) {
      const std::int64_t at = (row * of.shape.heads + head) * d;
      const ReferencePair pair(of, at, i * d, head * of.shape.queries + row);
      for (std::int64_t j = 0; j < d; ++j) {
        gradient_k[j] += pair.ds * to_float(of.q[at + j]);
        gradient_v[j] += pair.p * to_float(of.d_out[at + j]);
      }
    }
  }
  for (std::int64_t j = 0; j < d; ++j) {
    dk[i * d + j] = to_bf16(gradient_k[j]);
    dv[i * d + j] = to_bf16(gradient_v[j]);
  }
}

}  // namespace ulysim::calibration::cuda
