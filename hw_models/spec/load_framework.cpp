#include "hw_models/spec/load_framework.h"

#include <array>
#include <string>

#include "hw_models/spec/read_sourced.h"

namespace ulysim::spec {
namespace {

// Sane bounds: a profile off by a prefix or a unit is refused, an unusual one is not.
constexpr Bounds<double> kPerElement{0.0, 1000.0};  // bytes moved or kept per element
constexpr Bounds<double> kFraction{0.0, 1.0};
constexpr Bounds<double> kFragmentation{1.0, 2.0};  // reserved memory is never less than allocated
constexpr Bounds<double> kRate{1e6, 1e13};          // parameters per second
constexpr Bounds<std::int64_t> kFew{0, 10'000};     // kernels, units, layers
constexpr Bounds<std::int64_t> kFlag{0, 1};
constexpr Bounds<std::int64_t> kTokens{1, 1 << 30};
constexpr Bounds<std::int64_t> kElements{0, 1'000'000'000'000};
constexpr Bounds<Bytes> kMemory{Bytes(0), Bytes(std::int64_t{1} << 36)};  // 64 GiB
constexpr Bounds<Bytes> kTile{Bytes(std::int64_t{1} << 20), Bytes(std::int64_t{1} << 36)};
constexpr Bounds<Duration> kHostTime{Duration(0), Duration(60'000'000'000'000)};  // a minute

void read_states(config::Mapping& map, StateBytes& out) {
  read_sourced(map, "weight_bytes", out.weight_bytes, kPerElement);
  read_sourced(map, "gradient_bytes", out.gradient_bytes, kPerElement);
  read_sourced(map, "master_bytes", out.master_bytes, kPerElement);
  read_sourced(map, "moments_bytes", out.moments_bytes, kPerElement);
  read_if_there(map, "host_bytes", out.host_bytes, kPerElement);
  read_sourced_or_default(map, "offloaded_only", out.offloaded_only, kFlag);
}

void read_swap(config::Mapping& map, OptimizerSwap& out) {
  read_sourced(map, "read_bytes", out.read_bytes, kPerElement);
  read_sourced(map, "written_bytes", out.written_bytes, kPerElement);
  read_sourced(map, "gradient_written_bytes", out.gradient_written_bytes, kPerElement);
  read_sourced(map, "host_bytes", out.host_bytes, kPerElement);
  read_sourced(map, "buffers", out.buffers, Bounds<std::int64_t>{1, 64});
  read_sourced(map, "overlap", out.overlap, kFlag);
}

void read_loss_scaling(config::Mapping& map, LossScaling& out) {
  read_sourced(map, "traffic", out.traffic, kPerElement);
}

void read_adafactor(config::Mapping& map, Adafactor& out) {
  read_sourced(map, "moments_bytes", out.moments_bytes, kPerElement);
  read_sourced(map, "transient_bytes", out.transient_bytes, kPerElement);
  read_sourced(map, "traffic", out.traffic, kPerElement);
}

void read_loading(config::Mapping& map, Loading& out) {
  read_sourced(map, "gpu_model_bytes", out.gpu_model_bytes, kPerElement);
  read_sourced(map, "gpu_shard_bytes", out.gpu_shard_bytes, kPerElement);
  read_sourced(map, "host_rank_bytes", out.host_rank_bytes, kPerElement);
  read_sourced(map, "host_node_bytes", out.host_node_bytes, kPerElement);
}

/// Facts that most stacks share; a file names them where its stack differs.
void read_optional_facts(config::Mapping& map, Framework& out) {
  static const std::array<std::string, 2> gather_unit{"module", "layer"};
  static const std::array<std::string, 4> loss_tiling{"bytes", "tokens", "hidden", "count"};
  read_sourced_or_default(map, "loss_tiling", out.loss_tiling, Words{loss_tiling});
  read_if_there(map, "loss_tile_tokens", out.loss_tile_tokens, kTokens);
  read_if_there(map, "loss_tiles", out.loss_tiles, kTokens);
  if ((out.loss_tiling.value == LossTiling::tokens) != out.loss_tile_tokens.has_value()) {
    map.error("loss_tiling", "loss_tile_tokens goes with loss_tiling tokens, and only with it");
  }
  if ((out.loss_tiling.value == LossTiling::count) != out.loss_tiles.has_value()) {
    map.error("loss_tiling", "loss_tiles goes with loss_tiling count, and only with it");
  }
  read_sourced_or_default(map, "loss_always_tiled", out.loss_always_tiled, kFlag);
  read_sourced_or_default(map, "tiled_loss_gemms", out.tiled_loss_gemms, Bounds<std::int64_t>{3, 4});
  read_sourced_or_default(map, "loss_tile_weight_traffic", out.loss_tile_weight_traffic, kPerElement);
  read_sourced_or_default(map, "loss_tile_weight_bytes", out.loss_tile_weight_bytes, kPerElement);
  read_if_there(map, "tiled_logits_bytes", out.tiled_logits_bytes, kPerElement);
  read_if_there(map, "tiled_loss_forward", out.tiled_loss_forward, kPerElement);
  read_if_there(map, "tiled_loss_backward", out.tiled_loss_backward, kPerElement);
  read_sourced_or_default(map, "vocabulary_multiple", out.vocabulary_multiple, kTokens);
  read_sourced_or_default(map, "quantise_traffic", out.quantise_traffic, kPerElement);
  read_sourced_or_default(map, "quantise_weight_traffic", out.quantise_weight_traffic, kPerElement);
  read_if_there(map, "quantise_gradient_traffic", out.quantise_gradient_traffic, kPerElement);
  read_sourced_or_default(map, "requantise_traffic", out.requantise_traffic, kPerElement);
  read_sourced_or_default(map, "transpose_weight_traffic", out.transpose_weight_traffic, kPerElement);
  read_sourced_or_default(map, "quantise_kernels", out.quantise_kernels, kFew);
  read_sourced_or_default(map, "quantised_gather", out.quantised_gather, kFlag);
  read_sourced_or_default(map, "adapter_traffic", out.adapter_traffic, kPerElement);
  read_sourced_or_default(map, "adapter_kernels", out.adapter_kernels, kFew);
  read_if_there(map, "reductions_in_flight", out.reductions_in_flight, Bounds<std::int64_t>{1, 1000});
  read_if_there(map, "split_logits_peak_bytes", out.split_logits_peak_bytes, kPerElement);
  read_if_there(map, "prefetch_per_hidden_squared", out.prefetch_per_hidden_squared, kPerElement);
  read_if_there(map, "persistence_per_hidden", out.persistence_per_hidden, kPerElement);
  read_if_there(map, "reduce_bucket_per_hidden_squared", out.reduce_bucket_per_hidden_squared, kPerElement);
  read_sourced_or_default(map, "gather_unit", out.gather_unit, Words{gather_unit});
  read_sourced_or_default(map, "gathered_weight_bytes", out.gathered_weight_bytes, kPerElement);
  read_sourced_or_default(map, "sharding_copies_compute", out.sharding_copies_compute, kFlag);
  read_sourced_or_default(map, "last_unit_stays_gathered", out.last_unit_stays_gathered, kFlag);
  read_sourced_or_default(map, "root_unit_stays_gathered", out.root_unit_stays_gathered, kFlag);
  read_sourced_or_default(map, "overlap_gradient_reduction", out.overlap_gradient_reduction, kFlag);
  read_sourced_or_default(map, "overlap_parameter_gather", out.overlap_parameter_gather, kFlag);
  read_sourced_or_default(map, "overlap_tensor_forward", out.overlap_tensor_forward, kFlag);
  read_sourced_or_default(map, "overlap_tensor_backward", out.overlap_tensor_backward, kFlag);
  read_sourced_or_default(map, "tensor_keeps_gathered", out.tensor_keeps_gathered, kFlag);
  read_sourced_or_default(map, "output_exchange_copies", out.output_exchange_copies, Bounds<std::int64_t>{1, 2});
  read_sourced_or_default(map, "records_exchange_buffers", out.records_exchange_buffers, kFlag);
  read_sourced_or_default(map, "further_communicators", out.further_communicators, kFew);
  read_sourced_or_default(map, "ring_gradient_wire_bytes", out.ring_gradient_wire_bytes, kPerElement);
  read_sourced_or_default(map, "ring_gradient_extra_send", out.ring_gradient_extra_send, kFlag);
  read_sourced_or_default(map, "ring_repeats_kv", out.ring_repeats_kv, kFlag);
  read_sourced_or_default(map, "ring_keeps_received", out.ring_keeps_received, kFlag);
  read_sourced_or_default(map, "ring_overlaps", out.ring_overlaps, kFlag);
  read_sourced_or_default(map, "ring_steps_through_gathered", out.ring_steps_through_gathered, kFlag);
  read_sourced_or_default(map, "optimizer_transient_bytes", out.optimizer_transient_bytes, kPerElement);
  read_sourced_or_default(map, "optimizer_chunk_elements", out.optimizer_chunk_elements, kElements);
  read_sourced_or_default(map, "host_pinned_bytes", out.host_pinned_bytes, kPerElement);
  read_sourced_or_default(map, "host_pinned_chunk_bytes", out.host_pinned_chunk_bytes, kPerElement);
  out.bf16_states = read_group<StateBytes>(map, "bf16_states", read_states);
  out.eight_bit_states = read_group<StateBytes>(map, "eight_bit_states", read_states);
  out.loss_scaling = read_group<LossScaling>(map, "loss_scaling", read_loss_scaling);
  out.adafactor = read_group<Adafactor>(map, "adafactor", read_adafactor);
  out.optimizer_swap = read_group<OptimizerSwap>(map, "optimizer_swap", read_swap);
  out.loading = read_group<Loading>(map, "loading", read_loading);
  read_if_there(map, "checkpoint_offload_stash", out.checkpoint_offload_stash, kFew);
  read_sourced_or_default(map, "pipeline_exchange_drains_host", out.pipeline_exchange_drains_host, kFlag);
  read_sourced_or_default(map, "pipeline_keeps_outputs", out.pipeline_keeps_outputs, kFlag);
  read_sourced_or_default(map, "pipeline_receive_buffers", out.pipeline_receive_buffers, kFlag);
}

}  // namespace

Framework read_framework(const config::Node& document, Diagnostics& diagnostics) {
  // Words in the order of their enum.
  static const std::array<std::string, 2> host_memory{"pinned", "pageable"};
  static const std::array<std::string, 2> copy_mode{"overlapped", "blocking"};
  static const std::array<std::string, 2> pinned_blocks{"exact", "power-of-two"};
  static const std::array<std::string, 3> selective{"nothing", "core-attention", "every-second-gemm"};

  config::Mapping map(document, "", diagnostics);
  Framework out{.summary = map.required<std::string>("summary")};
  read_sourced(map, "norm_forward", out.norm_forward, kPerElement);
  read_sourced(map, "norm_backward", out.norm_backward, kPerElement);
  read_sourced(map, "rope_forward", out.rope_forward, kPerElement);
  read_sourced(map, "rope_backward", out.rope_backward, kPerElement);
  read_sourced(map, "activation_forward", out.activation_forward, kPerElement);
  read_sourced(map, "activation_backward", out.activation_backward, kPerElement);
  read_sourced(map, "residual_forward", out.residual_forward, kPerElement);
  read_sourced(map, "residual_backward", out.residual_backward, kPerElement);
  read_sourced(map, "all_to_all_pack", out.all_to_all_pack, kPerElement);
  read_sourced(map, "ring_merge_forward", out.ring_merge_forward, kPerElement);
  read_sourced(map, "ring_merge_backward", out.ring_merge_backward, kPerElement);
  read_sourced(map, "loss_forward", out.loss_forward, kPerElement);
  read_sourced(map, "loss_backward", out.loss_backward, kPerElement);
  read_sourced(map, "optimizer_traffic", out.optimizer_traffic, kPerElement);
  read_sourced(map, "gradient_accumulate", out.gradient_accumulate, kPerElement);
  read_sourced(map, "norm_kernels", out.norm_kernels, kFew);
  read_sourced(map, "rope_kernels", out.rope_kernels, kFew);
  read_sourced(map, "activation_kernels", out.activation_kernels, kFew);
  read_sourced(map, "residual_kernels", out.residual_kernels, kFew);
  read_sourced(map, "pack_kernels", out.pack_kernels, kFew);
  read_sourced(map, "ring_merge_kernels", out.ring_merge_kernels, kFew);
  read_sourced(map, "loss_kernels", out.loss_kernels, kFew);
  read_sourced(map, "backward_kernels", out.backward_kernels, kPerElement);
  read_sourced(map, "norm_saved", out.norm_saved, kPerElement);
  read_sourced_or_default(map, "norm_saves_input", out.norm_saves_input, kFlag);
  read_sourced(map, "activation_saved", out.activation_saved, kPerElement);
  read_sourced_or_default(map, "norm_forward_scratch", out.norm_forward_scratch, kPerElement);
  read_sourced_or_default(map, "norm_backward_scratch", out.norm_backward_scratch, kPerElement);
  read_sourced_or_default(map, "activation_backward_in_place", out.activation_backward_in_place, kFlag);
  read_if_there(map, "mlp_tile_tokens", out.mlp_tile_tokens, kTokens);
  read_sourced_or_default(map, "mlp_tiles_kept", out.mlp_tiles_kept, kFlag);
  read_if_there(map, "tiled_activation_saved", out.tiled_activation_saved, kPerElement);
  read_if_there(map, "tiled_activation_forward", out.tiled_activation_forward, kPerElement);
  read_if_there(map, "tiled_activation_backward", out.tiled_activation_backward, kPerElement);
  read_sourced(map, "logits_peak_bytes", out.logits_peak_bytes, kPerElement);
  read_sourced(map, "logits_kept_bytes", out.logits_kept_bytes, kPerElement);
  read_sourced(map, "logits_forward_bytes", out.logits_forward_bytes, kPerElement);
  read_sourced_or_default(map, "logits_stranded_bytes", out.logits_stranded_bytes, kPerElement);
  read_sourced_or_default(map, "recompute_reentrant", out.recompute_reentrant, kFlag);
  read_sourced_or_default(map, "experts_combine_scratch", out.experts_combine_scratch, kPerElement);
  read_sourced(map, "loss_tile_bytes", out.loss_tile_bytes, kTile);
  read_sourced(map, "prefetch_units", out.prefetch_units, kFew);
  read_sourced(map, "gather_copies", out.gather_copies, kPerElement);
  read_sourced(map, "persistence_elements", out.persistence_elements, kElements);
  read_sourced(map, "reuse_distance_elements", out.reuse_distance_elements, kElements);
  read_sourced(map, "reduce_bucket_elements", out.reduce_bucket_elements, kElements);
  read_sourced(map, "reduce_bucket_kept", out.reduce_bucket_kept, kPerElement);
  read_sourced(map, "reduce_bucket_transient", out.reduce_bucket_transient, kPerElement);
  read_sourced(map, "gradient_wire_bytes", out.gradient_wire_bytes, kPerElement);
  read_sourced(map, "sequence_parallel_gradient_wire_bytes", out.sequence_parallel_gradient_wire_bytes, kPerElement);
  read_sourced(map, "weight_bytes", out.weight_bytes, kPerElement);
  read_sourced(map, "gradient_bytes", out.gradient_bytes, kPerElement);
  read_sourced(map, "master_bytes", out.master_bytes, kPerElement);
  read_sourced(map, "moments_bytes", out.moments_bytes, kPerElement);
  read_sourced(map, "host_bytes_per_parameter", out.host_bytes_per_parameter, kPerElement);
  read_sourced(map, "host_weight_bytes", out.host_weight_bytes, kPerElement);
  read_sourced(map, "offload_gradient_d2h_bytes", out.offload_gradient_d2h_bytes, kPerElement);
  read_sourced(map, "offload_gradient_h2d_bytes", out.offload_gradient_h2d_bytes, kPerElement);
  read_sourced(map, "offload_gradient_boundary_d2h_bytes", out.offload_gradient_boundary_d2h_bytes, kPerElement);
  read_sourced(map, "offload_weight_h2d_bytes", out.offload_weight_h2d_bytes, kPerElement);
  read_sourced(map, "host_adam_traffic", out.host_adam_traffic, kPerElement);
  read_sourced(map, "host_adam_rate", out.host_adam_rate, kRate);
  read_sourced(map, "checkpoint_offload_memory", out.checkpoint_offload_memory, Words{host_memory});
  read_sourced(map, "checkpoint_offload_copy", out.checkpoint_offload_copy, Words{copy_mode});
  read_sourced(map, "checkpoint_offload_keep_last", out.checkpoint_offload_keep_last, kFew);
  read_sourced(map, "checkpoint_offload_prefetch", out.checkpoint_offload_prefetch, kFew);
  read_sourced(map, "pinned_blocks", out.pinned_blocks, Words{pinned_blocks});
  read_sourced(map, "recompute_early_stop", out.recompute_early_stop, kFlag);
  read_sourced(map, "selective_recompute", out.selective_recompute, Words{selective});
  read_sourced(map, "issue_time_per_kernel", out.issue_time_per_kernel, kHostTime);
  read_sourced(map, "sync_per_attention", out.sync_per_attention, kFew);
  read_sourced(map, "fixed_time_per_micro_step", out.fixed_time_per_micro_step, kHostTime);
  read_sourced(map, "fixed_time_per_step", out.fixed_time_per_step, kHostTime);
  read_sourced_or_default(map, "position_table_bytes", out.position_table_bytes, kPerElement);
  read_sourced(map, "context_memory", out.context_memory, kMemory);
  read_sourced(map, "nccl_memory_per_communicator", out.nccl_memory_per_communicator, kMemory);
  read_sourced(map, "workspace_memory", out.workspace_memory, kMemory);
  read_sourced(map, "fragmentation", out.fragmentation, kFragmentation);
  read_sourced(map, "risky_margin", out.risky_margin, kFraction);
  read_sourced(map, "communication_sms", out.communication_sms, kFew);
  read_optional_facts(map, out);
  map.finish();
  return out;
}

}  // namespace ulysim::spec
