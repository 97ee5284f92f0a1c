#pragma once

#include <optional>
#include <vector>

#include "sim/workload/block_builder.h"
#include "sim/workload/feed_forward.h"

namespace ulysim::workload {

/// The MLP of a mixture-of-experts layer: a router sends each token to `top_k` of the experts, whose outputs are
/// weighted and added; shared experts see every token. Dropless: tokens are sorted by expert (`slots`), each expert
/// multiplies as many rows as it has (MegaBlocks, arXiv 2211.15841; Mixtral, arXiv 2401.04088 §2.1).
class MixtureOfExperts {
 public:
  /// Declares the weights. Requires model.moe.
  explicit MixtureOfExperts(BlockBuilder& builder);

  /// Returns the outputs to be added: of the routed experts, and of the shared ones where there are.
  [[nodiscard]] std::vector<TensorId> forward(TensorId x);
  /// Gradients of x, to be added up. Weight gradients of the experts are accumulated, those of `weights()` are not.
  [[nodiscard]] std::vector<TensorId> backward(TensorId d_y);
  /// Router and shared experts.
  [[nodiscard]] std::vector<BlockBuilder::Weight> weights() const;

 private:
  BlockBuilder& b_;
  Extent scores_{};
  Extent choices_{};
  BlockBuilder::Weight w_router_{};
  std::optional<FeedForward> shared_{};
  std::optional<FeedForward> experts_{};
  TensorId x_{}, logits_{}, probabilities_{}, expert_out_{};
};

}  // namespace ulysim::workload
