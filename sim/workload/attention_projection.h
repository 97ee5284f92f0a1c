#pragma once

#include <utility>
#include <vector>

#include "sim/workload/block_builder.h"

namespace ulysim::workload {

/// The shapes of one layer's attention: heads and their elements, of queries, keys, values and the output.
struct AttentionExtents {
  std::vector<Extent> q{}, k{}, v{}, o{};
};
[[nodiscard]] AttentionExtents attention_extents(const Transformer& model);
[[nodiscard]] std::vector<Dim> dims_of(const std::vector<Extent>& extents);

/// From a layer's normed input to rotated queries and keys, and values: straight, or through low-rank latents
/// (multi-head latent attention, DeepSeek-V2, arXiv 2405.04434 equations 9 to 19; in training K and V are expanded to
/// all heads).
class AttentionProjection {
 public:
  struct Outputs {
    TensorId q{}, k{}, v{};
  };

  /// Declares the weights.
  explicit AttentionProjection(BlockBuilder& builder);

  [[nodiscard]] Outputs forward(TensorId x);
  /// Gradients of x, to be added up, from those of the outputs. Weight gradients are written but not accumulated.
  [[nodiscard]] std::vector<TensorId> backward(const Outputs& d);
  [[nodiscard]] const std::vector<BlockBuilder::Weight>& weights() const { return weights_; }

 private:
  [[nodiscard]] BlockBuilder::Weight declare(const char* name, const Extent& in, const std::vector<Extent>& out);
  [[nodiscard]] std::pair<TensorId, TensorId> normed(TensorId q, TensorId k);
  [[nodiscard]] std::pair<TensorId, TensorId> normed_backward(TensorId d_nq, TensorId d_nk);
  [[nodiscard]] Outputs latent_forward(TensorId x);
  [[nodiscard]] std::vector<TensorId> latent_backward(const Outputs& d);

  BlockBuilder& b_;
  AttentionExtents extents_{};
  std::vector<BlockBuilder::Weight> weights_{};
  BlockBuilder::Weight wq_{}, wk_{}, wv_{};
  TensorId x_{};
  std::vector<TensorId> norm_inputs_{}, norm_kept_{};  ///< of queries and of keys, where those are normalised
  // Of multi-head latent attention only.
  Extent q_latent_extent_{}, kv_down_extent_{}, kv_latent_extent_{};
  std::vector<Extent> nope_{};
  BlockBuilder::Weight w_q_down_{}, w_kv_down_{};
  TensorId q_down_{}, q_in_{}, kv_down_{}, kv_latent_{};
};

}  // namespace ulysim::workload
