#pragma once

#include <cstdint>
#include <optional>

#include "sim/workload/adapters.h"
#include "sim/workload/op_graph.h"
#include "sim/workload/transformer.h"

namespace ulysim::workload {

/// Element-wise traffic and saved bytes of a training stack, per element; a framework profile fills it.
struct ElementwiseCosts {
  double norm_forward{}, norm_backward{};              ///< per element of hidden and norm
  double rope_forward{}, rope_backward{};              ///< per element of q and k
  double activation_forward{}, activation_backward{};  ///< per element of ffn
  double residual_forward{}, residual_backward{};      ///< per element of hidden and residual add
  double loss_forward{}, loss_backward{};              ///< per logit
  std::int64_t backward_launches{1};                   ///< kernels of a backward per kernel of its forward
  std::int64_t norm_launches{1}, rope_launches{1}, activation_launches{1}, residual_launches{1}, loss_launches{1};
  std::int64_t norm_saved{};    ///< bytes per element kept for backward beside input and output
  bool norm_keeps_input{true};  ///< the backward of a norm reads its input
  std::int64_t norm_forward_scratch{}, norm_backward_scratch{};  ///< per element, while a norm runs
  std::int64_t activation_saved{};                               ///< per ffn element beside gate, up and the product
  std::int64_t experts_combine_scratch{};     ///< per hidden element of a slot, while its output is weighed, backward
  bool activation_in_place{};                 ///< its backward writes the gradients over gate and up
  std::int64_t logits_kept{4};                ///< per logit, from loss forward to loss backward
  std::int64_t logits_forward_workspace{4};   ///< per logit, beside the bf16 logits and what is kept
  std::int64_t logits_backward_workspace{6};  ///< per logit, beside what was kept and the bf16 gradient
  double quantise_traffic{};                  ///< per element of an activation that a low-precision GEMM takes
  double quantise_weight_traffic{};           ///< per element of a weight, each time
  double quantise_gradient_traffic{};         ///< per element of a gradient that one takes
  double requantise_traffic{};                ///< per element of an input, in backward; 0: the quantised one is kept
  double transpose_weight_traffic{};          ///< per element of a weight that came quantised, in backward
  std::int64_t quantise_launches{1};          ///< of one tensor
  double adapter_traffic{};                   ///< per element of the output of a map with an adapter
  std::int64_t adapter_launches{1};
  double optimizer_traffic{};                ///< per parameter, on the GPU
  std::int64_t optimizer_bytes{12};          ///< per parameter: master weight and two moments
  std::int64_t optimizer_transient_bytes{};  ///< per parameter that the optimizer handles at once, while it runs
  /// Of the matrices of layers, where the optimizer treats those apart (Muon); absent: all parameters are alike.
  std::optional<std::int64_t> matrix_optimizer_bytes{};
  double matrix_optimizer_traffic{};
  std::int64_t weight_bytes{2};    ///< per parameter, as kept between steps
  std::int64_t gradient_bytes{2};  ///< per parameter, as accumulated
};

struct StepOptions {
  std::int64_t sequence_length{};
  std::int64_t batch{1};  ///< sequences per micro step over all data-parallel replicas
  std::int64_t micro_batches{1};
  kernel::AttentionKernel attention{kernel::AttentionKernel::flash_attention_2};
  Mask::Kind mask{Mask::Kind::causal};           ///< a layer's own sliding window or chunk comes on top when causal
  std::optional<std::int64_t> sliding_window{};  ///< of every layer; one with a shorter window keeps that
  std::optional<BlockSparse> block_sparse{};     ///< of every layer, instead of windows and chunks
  DocumentEnds documents{};                      ///< of every sequence; null: each is one document
  kernel::Precision gemm_precision{kernel::Precision::bf16};  ///< of the layers' linear maps; not the head's
  bool quantised_gather{};                                    ///< weights travel as those GEMMs take them
  std::optional<Adapters> adapters{};                         ///< what is trained instead of the weights
  ElementwiseCosts costs{};
  std::int64_t vocabulary_multiple{1};   ///< embedding and head are padded to a multiple of this
  bool attention_synchronises{};         ///< the host drains the compute stream before each attention call
  Duration fixed_time_per_micro_step{};  ///< of the host: data, logging
  Duration fixed_time_per_step{};
};

/// The logical graph of one training step, as one imaginary device of unlimited size would run it: no strategy, no
/// communication. One template for each distinct kind of layer, so that dense and mixture-of-experts layers may
/// alternate.
[[nodiscard]] OpGraph build_training_step(const Transformer& model, const StepOptions& options);

/// The mask of a layer under these options.
[[nodiscard]] Mask mask_of(const LayerSpec& layer, const StepOptions& options);

/// Elements of the weights that are trained, all blocks together.
struct TrainedElements {
  std::int64_t dense{};
  std::int64_t of_experts{};  ///< routed
  friend bool operator==(const TrainedElements&, const TrainedElements&) = default;
};
[[nodiscard]] TrainedElements trained_elements(const OpGraph& graph);

/// Model FLOPs of the whole step over all ranks (6·N·tokens and 3× attention forward, exact pair counts).
/// The same for every strategy: what is repeated or reshaped does not count. A frozen weight has no gradient of its
/// own to compute: 4·N·tokens, and 6 for each element of an adapter; the padding of a vocabulary counts for nothing.
[[nodiscard]] Flops model_flops(const OpGraph& graph);
/// Executed FLOPs of the whole step over all ranks.
[[nodiscard]] Flops executed_flops(const OpGraph& graph);

}  // namespace ulysim::workload
