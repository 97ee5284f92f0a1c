#pragma once

#include <string>
#include <vector>

#include "sim/workload/block_builder.h"

namespace ulysim::workload {

/// A gated or plain MLP: the dense one of a layer, a shared expert, or the routed experts of a layer all together, each
/// on its slots (a grouped GEMM).
class FeedForward {
 public:
  struct Spec {
    std::string prefix{};        ///< of the names of its tensors and ops
    std::int64_t width{};        ///< inner width, of one expert
    std::vector<Extent> rows{};  ///< experts and slots; empty: batch and tokens
  };

  /// Declares the weights.
  FeedForward(BlockBuilder& builder, Spec spec);

  /// Returns the output.
  [[nodiscard]] TensorId forward(TensorId x);
  /// Gradients of x, to be added up: one of each map that reads it (of the experts one in all). Weight gradients are
  /// written but not accumulated.
  [[nodiscard]] std::vector<TensorId> backward(TensorId d_y);
  [[nodiscard]] std::vector<BlockBuilder::Weight> weights() const;

  /// An activation on this MLP's rows.
  [[nodiscard]] TensorId activation(const std::string& name, const Extent& inner, std::int64_t bytes = 2);

 private:
  [[nodiscard]] TensorId wide(const std::string& name, std::int64_t bytes = 2);

  BlockBuilder& b_;
  Spec spec_;
  bool gated_;
  Rows rows_{};
  BlockBuilder::Weight w_gate_{}, w_up_{}, w_down_{};
  TensorId x_{}, gate_{}, up_{}, product_{}, activation_kept_{};
};

}  // namespace ulysim::workload
