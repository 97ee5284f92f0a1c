#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hw_models/spec/sourced.h"
#include "sim/base/quantity.h"

namespace ulysim::spec {

/// Where offloaded tensors stand in host memory. Pageable copies run at `Node::pageable_copy_efficiency`.
enum class HostMemory : std::uint8_t { pinned, pageable };
/// A blocking copy holds the compute stream and the host; an overlapped one has a side stream.
enum class CopyMode : std::uint8_t { overlapped, blocking };
/// How large a pinned block really is: PyTorch's CachingHostAllocator takes the next power of two.
enum class PinnedBlocks : std::uint8_t { exact, power_of_two };
/// What `recompute: selective` computes again in backward. `every_second_gemm`: all but attention, collectives and
/// one of two GEMMs (torchtitan's per-op list).
enum class SelectiveRecompute : std::uint8_t { nothing, core_attention, every_second_gemm };
/// What one gather of sharded parameters fetches: `module`, the weights of the MLP and those of the rest apart;
/// `layer`, a layer's in one.
enum class GatherUnit : std::uint8_t { module, layer };
/// How a tiled loss is cut: `bytes`, ceil(b·s·V·4 / loss_tile_bytes) tiles; `tokens`, tiles of loss_tile_tokens;
/// `hidden`, tiles of next_pow2(ceil(s / ceil(V/h))) tokens, whose logits are one to two times the hidden states;
/// `count`, loss_tiles of them.
enum class LossTiling : std::uint8_t { bytes, tokens, hidden, count };

/// Bytes per parameter under other optimizer states than the stack's own. `host_bytes` as `host_bytes_per_parameter`.
struct StateBytes {
  Sourced<double> weight_bytes{};
  Sourced<double> gradient_bytes{};
  Sourced<double> master_bytes{};
  Sourced<double> moments_bytes{};  ///< of two moments
  /// With the optimizer offloaded; absent: these states cannot be.
  std::optional<Sourced<double>> host_bytes{};
  Sourced<std::int64_t> offloaded_only{};  ///< 1: the stack has them on the host only
};

/// Work in fp16: the loss is scaled, and gradients are scaled back and searched for infinities before the update.
struct LossScaling {
  Sourced<double> traffic{};  ///< on the GPU, bytes per parameter of the shard and step
};

/// Adafactor (arXiv 1804.04235). Second moments are rows and columns of a matrix, or as many as there are parameters
/// where the stack shows it flat shards.
struct Adafactor {
  Sourced<double> moments_bytes{};    ///< per parameter of the shard
  Sourced<double> transient_bytes{};  ///< further GPU memory while it runs, per parameter handled at once
  Sourced<double> traffic{};          ///< on the GPU, per parameter of the shard and step, clipping included
};

/// Optimizer states on NVMe (ZeRO-Infinity, arXiv 2104.07857 §5): the host updates them chunk by chunk in pinned
/// buffers. Bytes per parameter of the shard and step.
struct OptimizerSwap {
  Sourced<double> read_bytes{};
  Sourced<double> written_bytes{};
  Sourced<double> gradient_written_bytes{};  ///< at the last micro-step, as gradients arrive
  Sourced<double> host_bytes{};              ///< what stays in host memory all the time, buffers not counted
  Sourced<std::int64_t> buffers{};           ///< fp32, of one chunk each
  Sourced<std::int64_t> overlap{};           ///< 1: the next chunk is read and the last one written beside the update
};

/// What a rank holds while a checkpoint is loaded: bytes for each parameter of the whole model, and of its own shard.
struct Loading {
  Sourced<double> gpu_model_bytes{};
  Sourced<double> gpu_shard_bytes{};
  Sourced<double> host_rank_bytes{};  ///< of the whole model, by every rank
  Sourced<double> host_node_bytes{};  ///< of the whole model, by one rank of the node
};

/// What a training stack does in memory and time (catalog/frameworks/NAME.yaml): plain numbers that passes, memory
/// and engine read. Keys whose member has a value or is optional here may be left out of a file. h hidden, f
/// feed-forward, q and kv the widths of queries and of keys, V vocabulary.
struct Framework {
  std::string name{};
  std::string summary{};

  // Memory traffic of kernels that are neither GEMM nor attention: bytes read plus written, per element named.
  Sourced<double> norm_forward{};         ///< per norm and element of h
  Sourced<double> norm_backward{};        ///< the same
  Sourced<double> rope_forward{};         ///< per element of q and of k
  Sourced<double> rope_backward{};        ///< the same
  Sourced<double> activation_forward{};   ///< gate and product, per element of f
  Sourced<double> activation_backward{};  ///< the same
  Sourced<double> residual_forward{};     ///< per add and element of h; a layer has two adds
  Sourced<double> residual_backward{};    ///< the same; holds the sums where gradients fan in
  Sourced<double> all_to_all_pack{};      ///< per element of one local copy; once before a send, once after a receive
  Sourced<double> ring_merge_forward{};   ///< per element of the output and ring step
  Sourced<double> ring_merge_backward{};  ///< per element of dQ, dK, dV and ring step
  Sourced<double> loss_forward{};         ///< per logit
  Sourced<double> loss_backward{};        ///< per logit
  Sourced<double> optimizer_traffic{};    ///< on the GPU, per parameter of the shard and step
  Sourced<double> gradient_accumulate{};  ///< per parameter of the shard and further micro-step

  // Kernels launched forward, for the host's issue time; one call of each thing.
  Sourced<std::int64_t> norm_kernels{};  ///< one norm
  Sourced<std::int64_t> rope_kernels{};  ///< q and k together
  Sourced<std::int64_t> activation_kernels{};
  Sourced<std::int64_t> residual_kernels{};    ///< one add
  Sourced<std::int64_t> pack_kernels{};        ///< one local copy beside an all-to-all, view included
  Sourced<std::int64_t> ring_merge_kernels{};  ///< one ring step
  Sourced<std::int64_t> loss_kernels{};        ///< forward and backward together, one tile or the whole
  Sourced<double> backward_kernels{};          ///< kernels of a backward per kernel of its forward

  // Kept from forward for backward, bytes per element.
  Sourced<double> norm_saved{};                        ///< per norm and element, of its width, beyond its bf16 output
  Sourced<std::int64_t> norm_saves_input{.value = 1};  ///< 1: its bf16 input is among that; 0: a copy in its place
  Sourced<double> activation_saved{};                  ///< per element of f: gate, silu(gate), up, product
  // There while the kernels of a norm run and no longer, per element, beyond what it saves and its output.
  Sourced<double> norm_forward_scratch{};
  Sourced<double> norm_backward_scratch{};
  Sourced<std::int64_t> activation_backward_in_place{};  ///< 1: gradients are written over gate and up
  // The same of the MLP where a tiled one is another module.
  std::optional<Sourced<double>> tiled_activation_saved{};
  std::optional<Sourced<double>> tiled_activation_forward{};
  std::optional<Sourced<double>> tiled_activation_backward{};

  std::optional<Sourced<std::int64_t>> mlp_tile_tokens{};  ///< of a tiled MLP; absent: h of them
  Sourced<std::int64_t> mlp_tiles_kept{};  ///< 1: what a tile saves stays for backward; 0: backward repeats each tile

  Sourced<double> experts_combine_scratch{};  ///< while outputs of experts are weighed, backward; per slot and h

  // Loss head, bytes per logit.
  Sourced<double> logits_peak_bytes{};     ///< at the peak, in backward; of the tile when tiled
  Sourced<double> logits_kept_bytes{};     ///< from forward to backward, untiled
  Sourced<double> logits_forward_bytes{};  ///< at the peak of forward, untiled
  /// Reserved and free at that of backward, untiled: in blocks that none of its requests fits.
  Sourced<double> logits_stranded_bytes{};
  Sourced<Bytes> loss_tile_bytes{};  ///< tiled: ceil(b·s·V·4 / this) tiles
  Sourced<LossTiling> loss_tiling{};
  std::optional<Sourced<std::int64_t>> loss_tile_tokens{};  ///< present where loss_tiling is `tokens`
  std::optional<Sourced<std::int64_t>> loss_tiles{};        ///< present where it is `count`
  Sourced<std::int64_t> loss_always_tiled{};                ///< 1: the stack's loss is tiled whatever is asked for
  Sourced<std::int64_t> tiled_loss_gemms{.value = 3};       ///< of the head in all: 3, or 4 with a recompute per tile
  Sourced<double> loss_tile_weight_traffic{};               ///< beside the GEMMs, per element of the head and tile
  Sourced<double> loss_tile_weight_bytes{};                 ///< copies of the head beside a tile, per element
  std::optional<Sourced<double>> tiled_logits_bytes{};      ///< per logit of a tile at its peak, if not as untiled
  std::optional<Sourced<double>> tiled_loss_forward{};      ///< traffic per logit, if not as untiled
  std::optional<Sourced<double>> tiled_loss_backward{};
  Sourced<std::int64_t> vocabulary_multiple{.value = 1};  ///< the vocabulary is padded to this times the tensor degree

  // Low-precision GEMMs: what makes their operands, per element quantised.
  Sourced<double> quantise_traffic{};         ///< bytes read and written, of an activation or a gradient
  Sourced<double> quantise_weight_traffic{};  ///< the same of a weight, each time before it is used
  std::optional<Sourced<double>> quantise_gradient_traffic{};  ///< the same of a gradient, if not as an activation
  /// The same of a product's input once more in backward, where its bf16 form is what stays; 0: the quantised one does.
  Sourced<double> requantise_traffic{};
  Sourced<double> transpose_weight_traffic{};          ///< of a weight that came quantised, for its dgrad
  Sourced<std::int64_t> quantise_kernels{.value = 1};  ///< of one tensor
  Sourced<std::int64_t> quantised_gather{};  ///< 1: shards are quantised and travel so, nothing casts them later

  // Adapters.
  Sourced<double> adapter_traffic{.value = 10};  ///< scaling and adding, per element of a map's output
  Sourced<std::int64_t> adapter_kernels{.value = 2};

  // Sharded states.
  Sourced<std::int64_t> prefetch_units{};           ///< gathered units that may be ahead of their use
  Sourced<double> gather_copies{};                  ///< copies of a unit's parameters alive while it is gathered
  Sourced<std::int64_t> persistence_elements{};     ///< parameter tensors up to this size are never sharded
  Sourced<std::int64_t> reuse_distance_elements{};  ///< needed again within this span: kept, not gathered again
  Sourced<std::int64_t> reduce_bucket_elements{};
  // The same three by the model's width, where the stack sets them so; they take the place of the fixed ones.
  std::optional<Sourced<double>> prefetch_per_hidden_squared{};  ///< elements fetched ahead, whole units
  std::optional<Sourced<double>> persistence_per_hidden{};
  std::optional<Sourced<double>> reduce_bucket_per_hidden_squared{};
  /// Buckets that may be on their way before kernels wait for the oldest; absent: any number.
  std::optional<Sourced<std::int64_t>> reductions_in_flight{};
  Sourced<double> reduce_bucket_kept{};                     ///< buckets allocated for the whole run, in the wire type
  Sourced<double> reduce_bucket_transient{};                ///< further copies while one is reduced
  Sourced<double> gradient_wire_bytes{};                    ///< per element
  Sourced<double> sequence_parallel_gradient_wire_bytes{};  ///< the same where the sequence is sharded
  Sourced<GatherUnit> gather_unit{};
  Sourced<double> gathered_weight_bytes{.value = 2};  ///< per element on the wire and while gathered
  /// 1: tensors are copied out of the flat buffer of a gather, and gradients into that of a reduction, between the
  /// kernels that compute.
  Sourced<std::int64_t> sharding_copies_compute{};
  Sourced<std::int64_t> last_unit_stays_gathered{};  ///< 1: final norm and head, from forward to backward
  Sourced<std::int64_t> root_unit_stays_gathered{};  ///< 1: embedding, final norm and head, all through the step
  /// Below ZeRO-3, which always overlaps; 0: reduced after the whole backward, and stage 2, which must reduce as
  /// gradients come, on the stream that computes.
  Sourced<std::int64_t> overlap_gradient_reduction{.value = 1};
  Sourced<std::int64_t> overlap_parameter_gather{};  ///< ZeRO-1, 2; 1: gathered during the next forward

  // Tensor parallelism: which collectives run beside the GEMM that they feed or drain.
  Sourced<std::int64_t> overlap_tensor_forward{};
  Sourced<std::int64_t> overlap_tensor_backward{.value = 1};  ///< gather beside dgrad, reduce-scatter beside wgrad
  Sourced<std::int64_t> tensor_keeps_gathered{};  ///< 1: backward finds products' inputs gathered; 0: gathers again
  std::optional<Sourced<double>> split_logits_peak_bytes{};  ///< of a cut vocabulary, where its loss is another code

  // Ulysses.
  Sourced<std::int64_t> output_exchange_copies{.value = 2};  ///< of the attention output; 1: on the token side only
  /// 1: what an all-to-all sends and receives comes back to the allocator once the host has seen that it is done
  Sourced<std::int64_t> records_exchange_buffers{};

  // Ring and context parallelism.
  Sourced<double> ring_gradient_wire_bytes{.value = 4};        ///< per element of the dK, dV that travel
  Sourced<std::int64_t> ring_gradient_extra_send{.value = 1};  ///< 1: R sends bring dK, dV home; 0: R − 1 do
  Sourced<std::int64_t> ring_repeats_kv{};                     ///< 1: K, V are repeated to the query heads beforehand
  Sourced<std::int64_t> ring_keeps_received{};  ///< 1: every K, V received and every partial output stays to the end
  Sourced<std::int64_t> ring_overlaps{.value = 1};  ///< 0: kernels wait for each exchange as soon as it is issued
  /// Of gathered K, V: 1: attention goes on rank by rank and merges, and dK, dV travel round; 0: one call, and a
  /// reduce-scatter.
  Sourced<std::int64_t> ring_steps_through_gathered{};

  // Bytes per parameter of the shard.
  Sourced<double> weight_bytes{};
  Sourced<double> gradient_bytes{};
  Sourced<double> master_bytes{};
  Sourced<double> moments_bytes{};              ///< both together
  Sourced<double> optimizer_transient_bytes{};  ///< further GPU memory while the optimizer runs
  /// Parameters of the shard that the optimizer handles at once: its transients and swapped chunks are no larger.
  Sourced<std::int64_t> optimizer_chunk_elements{.value = 1'000'000'000'000};
  std::optional<StateBytes> bf16_states{};  ///< absent: the stack has none
  std::optional<StateBytes> eight_bit_states{};
  std::optional<LossScaling> loss_scaling{};  ///< absent: the stack has no fp16
  std::optional<Adafactor> adafactor{};       ///< absent: the stack has none
  std::optional<OptimizerSwap> optimizer_swap{};
  std::optional<Loading> loading{};
  Sourced<double> host_bytes_per_parameter{};             ///< in host memory with the optimizer offloaded (weights not)
  Sourced<double> host_pinned_bytes{};                    ///< of these, in one block of pinned memory
  Sourced<double> host_pinned_chunk_bytes{};              ///< and in pinned blocks of `optimizer_chunk_elements` each
  Sourced<double> host_weight_bytes{};                    ///< and for offloaded weights beside
  Sourced<double> offload_gradient_d2h_bytes{};           ///< every micro-step, as buckets are reduced
  Sourced<double> offload_gradient_h2d_bytes{};           ///< every micro-step
  Sourced<double> offload_gradient_boundary_d2h_bytes{};  ///< at the last micro-step
  Sourced<double> offload_weight_h2d_bytes{};             ///< after the optimizer
  Sourced<double> host_adam_traffic{};                    ///< bytes of host memory moved per parameter and step
  Sourced<double> host_adam_rate{};                       ///< parameters per second that a node updates at most

  // Checkpointed activations.
  Sourced<HostMemory> checkpoint_offload_memory{};
  Sourced<CopyMode> checkpoint_offload_copy{};
  Sourced<std::int64_t> checkpoint_offload_keep_last{};             ///< newest checkpoints that stay on the GPU
  Sourced<std::int64_t> checkpoint_offload_prefetch{};              ///< layers fetched back ahead of their backward
  std::optional<Sourced<std::int64_t>> checkpoint_offload_stash{};  ///< copies out in flight before compute waits
  Sourced<PinnedBlocks> pinned_blocks{};
  Sourced<std::int64_t>
      recompute_reentrant{};  ///< 1: output and incoming gradient stay until the whole backward is done
  Sourced<std::int64_t> recompute_early_stop{};  ///< 1: recompute ends at the last tensor that backward needs
  Sourced<SelectiveRecompute> selective_recompute{};

  // Host.
  Sourced<Duration> issue_time_per_kernel{};
  Sourced<std::int64_t> pipeline_exchange_drains_host{};  ///< 1: each exchange between stages waits for the device
  Sourced<std::int64_t> pipeline_keeps_outputs{};         ///< 1: the last stage holds all logits until the step ends
  Sourced<std::int64_t> pipeline_receive_buffers{};  ///< 1: one for each micro-batch and message, kept all the time
  Sourced<std::int64_t> sync_per_attention{};        ///< times that an attention call drains the stream
  Sourced<Duration> fixed_time_per_micro_step{};
  Sourced<Duration> fixed_time_per_step{};

  // Device memory that no tensor of the model owns.
  Sourced<double> position_table_bytes{};  ///< per token of the whole sequence and element of a head
  Sourced<Bytes> context_memory{};
  Sourced<Bytes> nccl_memory_per_communicator{};
  Sourced<std::int64_t> further_communicators{};  ///< beside those of the simulated collectives
  Sourced<Bytes> workspace_memory{};
  Sourced<double> fragmentation{};  ///< reserved / allocated at the peak
  Sourced<double> risky_margin{};   ///< a plan that leaves less than this fraction of the memory free is risky

  Sourced<std::int64_t> communication_sms{};  ///< taken from compute while a collective runs

  /// Largest parameter tensor that is never sharded, in a model of this width; elements.
  [[nodiscard]] std::int64_t persistence(std::int64_t hidden) const {
    return persistence_per_hidden
               ? static_cast<std::int64_t>(persistence_per_hidden->value * static_cast<double>(hidden))
               : persistence_elements.value;
  }
  /// Gradients that are reduced together, in a model of this width; elements.
  [[nodiscard]] std::int64_t reduce_bucket(std::int64_t hidden) const {
    const auto width = static_cast<double>(hidden);
    return reduce_bucket_per_hidden_squared
               ? static_cast<std::int64_t>(reduce_bucket_per_hidden_squared->value * width * width)
               : reduce_bucket_elements.value;
  }
  /// Units that may be gathered ahead of their use, in a model of this width whose smallest unit has so many elements:
  /// as many as it takes to reach the elements fetched ahead, the last one whole.
  [[nodiscard]] std::int64_t prefetched_units(std::int64_t hidden, std::int64_t smallest_unit) const {
    if (!prefetch_per_hidden_squared || smallest_unit == 0) {
      return prefetch_units.value;
    }
    const auto width = static_cast<double>(hidden);
    const auto elements = static_cast<std::int64_t>(prefetch_per_hidden_squared->value * width * width);
    const std::int64_t units = (elements + smallest_unit - 1) / smallest_unit;
    return units < prefetch_units.value ? units : prefetch_units.value;
  }
  /// Whether the sharded parameter is the master that the optimizer updates: then it is sharded as the states are.
  [[nodiscard]] bool parameter_is_master() const { return master_bytes.value == 0.0; }
};

}  // namespace ulysim::spec
