#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "calibration/backend.h"
#include "calibration/host/kernels.h"
#include "calibration/host/reference.h"
#include "calibration/host/transport.h"

namespace ulysim::calibration::host {

/// Attention of one layer with its sequence spread over the ranks of a transport, on the seeded inputs.
/// Buffers are made once; `forward` and `backward` only compute and communicate, one after the other (one thread).
class LayerAttention {
 public:
  virtual ~LayerAttention() = default;
  virtual void forward() = 0;
  /// After `forward`.
  virtual void backward() = 0;
  /// Of this rank's output and gradients: {output, dQ, dK, dV}.
  [[nodiscard]] virtual std::vector<ErrorNorm> errors(const ReferenceAttention& reference) const = 0;
};

/// DeepSpeed-Ulysses (arXiv 2309.14509): an all-to-all each for Q, K and V turns a share of the tokens with all heads
/// into all tokens with a share of the heads; after the attention one more turns the output back. Backward the same,
/// mirrored. Tokens lie in order; heads and kv_heads divide by the ranks.
[[nodiscard]] std::unique_ptr<LayerAttention> make_ulysses(const LayerProbe& probe, Transport& transport);

/// Ring attention (arXiv 2310.01889): K and V travel round the ring and meet the queries of every rank; backward their
/// gradients travel along and end at home. Zigzag order (zhuzilin/ring-flash-attention): rank r holds chunks r and
/// 2·ranks − 1 − r of 2·ranks, so that a causal mask leaves every rank the same work.
[[nodiscard]] std::unique_ptr<LayerAttention> make_ring(const LayerProbe& probe, Transport& transport);

[[nodiscard]] std::unique_ptr<LayerAttention> make_layer(const LayerProbe& probe, Transport& transport);

/// A sentence why the scheme cannot spread this over so many ranks; empty when it can.
[[nodiscard]] std::string refusal(const LayerProbe& probe, int ranks);

/// Scores that the busiest rank computes over all its heads, one direction (tiles that are not hidden whole).
[[nodiscard]] std::int64_t computed_scores(const LayerProbe& probe, int ranks);

}  // namespace ulysim::calibration::host
