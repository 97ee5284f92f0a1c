#include "sim/study/provenance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <type_traits>

#include "sim/base/format.h"

namespace ulysim::study {

namespace {

class Collector {
 public:
  explicit Collector(std::string prefix) : prefix_(std::move(prefix)) {}

  template <class T>
  void add(const std::string& name, const spec::Sourced<T>& number) {
    constexpr std::array<const char*, 4> kKinds{"datasheet", "published", "measured", "assumed"};
    out_.push_back({.name = prefix_ + name,
                    .value = text(number.value),
                    .source = number.source,
                    .kind = kKinds.at(static_cast<std::size_t>(number.kind)),
                    .spread = number.spread});
  }

  /// A fact that a file may leave out.
  template <class T>
  void add_given(const std::string& name, const spec::Sourced<T>& number) {
    if (!number.source.empty() && number.source != "default") {
      add(name, number);
    }
  }
  template <class T>
  void add_given(const std::string& name, const std::optional<spec::Sourced<T>>& number) {
    if (number) {
      add(name, *number);
    }
  }

  [[nodiscard]] std::vector<results::Parameter> take() { return std::move(out_); }

 private:
  template <class T>
  static std::string text(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return fmt::to_string(static_cast<int>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      return fmt::format("{}", value);
    } else {
      return exact(value);
    }
  }

  std::string prefix_;
  std::vector<results::Parameter> out_;
};

std::vector<results::Parameter> gpu_parameters(const spec::Gpu& gpu) {
  Collector c("gpu." + gpu.name + ".");
  c.add("memory", gpu.memory);
  c.add("memory_bandwidth", gpu.memory_bandwidth);
  c.add("sms", gpu.sms);
  c.add("bf16", gpu.bf16);
  c.add_given("sustained_efficiency", gpu.sustained_efficiency);
  c.add_given("bandwidth_efficiency", gpu.bandwidth_efficiency);
  return c.take();
}

void add_transport(Collector& c, const std::string& name, const spec::Transport& transport) {
  c.add(name + ".all_to_all_efficiency", transport.all_to_all_efficiency);
  c.add(name + ".ring_efficiency", transport.ring_efficiency);
  c.add(name + ".p2p_efficiency", transport.p2p_efficiency);
  c.add(name + ".base_latency", transport.base_latency);
  c.add(name + ".step_latency", transport.step_latency);
}

std::vector<results::Parameter> node_parameters(const scenario::Scenario& scenario) {
  const spec::Node& node = scenario.cluster.node;
  Collector c("node." + node.name + ".");
  c.add("nvlink_bandwidth", node.nvlink_bandwidth);
  add_transport(c, "nvlink", node.nvlink);
  c.add("nics", node.nics);
  c.add("nic_bandwidth", node.nic_bandwidth);
  add_transport(c, "network", node.network);
  c.add("pcie_bandwidth", node.pcie_bandwidth);
  c.add("gpus_per_pcie_uplink", node.gpus_per_pcie_uplink);
  c.add("pcie_uplink_bandwidth", node.pcie_uplink_bandwidth);
  c.add("pageable_copy_efficiency", node.pageable_copy_efficiency);
  c.add("host_memory_bandwidth", node.host_memory_bandwidth);
  c.add("host_memory", node.host_memory);
  c.add("host_memory_reserved", node.host_memory_reserved);
  const bool uses_nvme = std::any_of(scenario.plans.begin(), scenario.plans.end(),
                                     [](const scenario::PlanEntry& entry) { return entry.plan.uses_nvme(); });
  if (node.nvme && uses_nvme) {
    c.add("nvme.read", node.nvme->read);
    c.add("nvme.write", node.nvme->write);
    c.add("nvme.capacity", node.nvme->capacity);
  }
  return c.take();
}

std::vector<results::Parameter> kernel_parameters(const scenario::Scenario& scenario) {
  const cost::KernelProfile& kernels = scenario.kernels;
  Collector c("kernels." + kernels.name + ".");
  c.add("gemm.efficiency", kernels.gemm.efficiency);
  c.add("gemm.sustained", kernels.gemm.sustained);
  c.add("gemm.tile_m", kernels.gemm.tile_m);
  c.add("gemm.tile_n", kernels.gemm.tile_n);
  c.add("gemm.wave_quantisation", kernels.gemm.wave_quantisation);
  c.add("gemm.k_overhead", kernels.gemm.k_overhead);
  c.add("gemm.launch", kernels.gemm.launch);
  c.add("attention_sustained", kernels.attention_sustained);
  for (const cost::AttentionProfile& profile : kernels.attention) {
    bool used = false;
    for (const scenario::PlanEntry& entry : scenario.plans) {
      used = used || entry.plan.attention == profile.implementation;
    }
    if (!used) {
      continue;
    }
    const std::string name =
        fmt::format("attention.{}.{}.", cost::name_of(profile.implementation), cost::name_of(profile.direction));
    c.add(name + "efficiency_64", profile.efficiency_64);
    c.add(name + "efficiency_128", profile.efficiency_128);
    c.add(name + "masked_factor", profile.masked_factor);
    c.add(name + "masked_keys", profile.masked_keys);
    c.add(name + "saturation_keys", profile.saturation_keys);
    c.add(name + "imbalance", profile.imbalance);
    c.add(name + "launch", profile.launch);
  }
  c.add("memory_bound.bandwidth_efficiency", kernels.memory_bound.bandwidth_efficiency);
  c.add("memory_bound.launch", kernels.memory_bound.launch);
  return c.take();
}

std::vector<results::Parameter> framework_parameters(const spec::Framework& f) {
  Collector c("framework." + f.name + ".");
  c.add("norm_forward", f.norm_forward);
  c.add("norm_backward", f.norm_backward);
  c.add("rope_forward", f.rope_forward);
  c.add("rope_backward", f.rope_backward);
  c.add("activation_forward", f.activation_forward);
  c.add("activation_backward", f.activation_backward);
  c.add("residual_forward", f.residual_forward);
  c.add("residual_backward", f.residual_backward);
  c.add("all_to_all_pack", f.all_to_all_pack);
  c.add_given("output_exchange_copies", f.output_exchange_copies);
  c.add_given("records_exchange_buffers", f.records_exchange_buffers);
  c.add("ring_merge_forward", f.ring_merge_forward);
  c.add("ring_merge_backward", f.ring_merge_backward);
  c.add("loss_forward", f.loss_forward);
  c.add("loss_backward", f.loss_backward);
  c.add("optimizer_traffic", f.optimizer_traffic);
  c.add("norm_kernels", f.norm_kernels);
  c.add("rope_kernels", f.rope_kernels);
  c.add("activation_kernels", f.activation_kernels);
  c.add("residual_kernels", f.residual_kernels);
  c.add("pack_kernels", f.pack_kernels);
  c.add("ring_merge_kernels", f.ring_merge_kernels);
  c.add("loss_kernels", f.loss_kernels);
  c.add("backward_kernels", f.backward_kernels);
  c.add("norm_saved", f.norm_saved);
  c.add_given("norm_saves_input", f.norm_saves_input);
  c.add("activation_saved", f.activation_saved);
  c.add_given("norm_forward_scratch", f.norm_forward_scratch);
  c.add_given("norm_backward_scratch", f.norm_backward_scratch);
  c.add_given("activation_backward_in_place", f.activation_backward_in_place);
  c.add_given("mlp_tile_tokens", f.mlp_tile_tokens);
  c.add_given("mlp_tiles_kept", f.mlp_tiles_kept);
  c.add_given("tiled_activation_saved", f.tiled_activation_saved);
  c.add_given("tiled_activation_forward", f.tiled_activation_forward);
  c.add_given("tiled_activation_backward", f.tiled_activation_backward);
  c.add_given("experts_combine_scratch", f.experts_combine_scratch);
  c.add("logits_peak_bytes", f.logits_peak_bytes);
  c.add("logits_kept_bytes", f.logits_kept_bytes);
  c.add("logits_forward_bytes", f.logits_forward_bytes);
  c.add_given("logits_stranded_bytes", f.logits_stranded_bytes);
  c.add("loss_tile_bytes", f.loss_tile_bytes);
  c.add_given("loss_tiling", f.loss_tiling);
  c.add_given("loss_tile_tokens", f.loss_tile_tokens);
  c.add_given("loss_tiles", f.loss_tiles);
  c.add_given("loss_always_tiled", f.loss_always_tiled);
  c.add_given("tiled_loss_gemms", f.tiled_loss_gemms);
  c.add_given("loss_tile_weight_traffic", f.loss_tile_weight_traffic);
  c.add_given("loss_tile_weight_bytes", f.loss_tile_weight_bytes);
  c.add_given("tiled_logits_bytes", f.tiled_logits_bytes);
  c.add_given("tiled_loss_forward", f.tiled_loss_forward);
  c.add_given("tiled_loss_backward", f.tiled_loss_backward);
  c.add_given("vocabulary_multiple", f.vocabulary_multiple);
  c.add("prefetch_units", f.prefetch_units);
  c.add_given("gather_unit", f.gather_unit);
  c.add_given("tensor_keeps_gathered", f.tensor_keeps_gathered);
  c.add_given("split_logits_peak_bytes", f.split_logits_peak_bytes);
  c.add_given("pipeline_keeps_outputs", f.pipeline_keeps_outputs);
  c.add_given("pipeline_receive_buffers", f.pipeline_receive_buffers);
  c.add_given("gathered_weight_bytes", f.gathered_weight_bytes);
  c.add_given("sharding_copies_compute", f.sharding_copies_compute);
  c.add_given("last_unit_stays_gathered", f.last_unit_stays_gathered);
  c.add_given("root_unit_stays_gathered", f.root_unit_stays_gathered);
  c.add_given("overlap_gradient_reduction", f.overlap_gradient_reduction);
  c.add_given("overlap_parameter_gather", f.overlap_parameter_gather);
  c.add_given("reductions_in_flight", f.reductions_in_flight);
  c.add_given("prefetch_per_hidden_squared", f.prefetch_per_hidden_squared);
  c.add_given("persistence_per_hidden", f.persistence_per_hidden);
  c.add_given("reduce_bucket_per_hidden_squared", f.reduce_bucket_per_hidden_squared);
  c.add("gather_copies", f.gather_copies);
  c.add("persistence_elements", f.persistence_elements);
  c.add("reuse_distance_elements", f.reuse_distance_elements);
  c.add("reduce_bucket_elements", f.reduce_bucket_elements);
  c.add("reduce_bucket_kept", f.reduce_bucket_kept);
  c.add("reduce_bucket_transient", f.reduce_bucket_transient);
  c.add("gradient_wire_bytes", f.gradient_wire_bytes);
  c.add("sequence_parallel_gradient_wire_bytes", f.sequence_parallel_gradient_wire_bytes);
  c.add("weight_bytes", f.weight_bytes);
  c.add("gradient_bytes", f.gradient_bytes);
  c.add("master_bytes", f.master_bytes);
  c.add("moments_bytes", f.moments_bytes);
  c.add("host_bytes_per_parameter", f.host_bytes_per_parameter);
  c.add("host_weight_bytes", f.host_weight_bytes);
  c.add("offload_gradient_d2h_bytes", f.offload_gradient_d2h_bytes);
  c.add("offload_gradient_h2d_bytes", f.offload_gradient_h2d_bytes);
  c.add("offload_gradient_boundary_d2h_bytes", f.offload_gradient_boundary_d2h_bytes);
  c.add("offload_weight_h2d_bytes", f.offload_weight_h2d_bytes);
  c.add("host_adam_traffic", f.host_adam_traffic);
  c.add("host_adam_rate", f.host_adam_rate);
  c.add("checkpoint_offload_prefetch", f.checkpoint_offload_prefetch);
  c.add("checkpoint_offload_keep_last", f.checkpoint_offload_keep_last);
  c.add("optimizer_transient_bytes", f.optimizer_transient_bytes);
  c.add_given("recompute_reentrant", f.recompute_reentrant);
  c.add("recompute_early_stop", f.recompute_early_stop);
  c.add("issue_time_per_kernel", f.issue_time_per_kernel);
  c.add("sync_per_attention", f.sync_per_attention);
  c.add("fixed_time_per_micro_step", f.fixed_time_per_micro_step);
  c.add("fixed_time_per_step", f.fixed_time_per_step);
  c.add_given("position_table_bytes", f.position_table_bytes);
  c.add("context_memory", f.context_memory);
  c.add("nccl_memory_per_communicator", f.nccl_memory_per_communicator);
  c.add_given("further_communicators", f.further_communicators);
  c.add("workspace_memory", f.workspace_memory);
  c.add("fragmentation", f.fragmentation);
  c.add("risky_margin", f.risky_margin);
  c.add("communication_sms", f.communication_sms);
  return c.take();
}

/// What only plans with low-precision products take.
std::vector<results::Parameter> precision_parameters(const scenario::Scenario& scenario) {
  const spec::Gpu& gpu = scenario.cluster.gpu;
  std::vector<std::string> seen;
  std::vector<results::Parameter> all;
  for (const scenario::PlanEntry& entry : scenario.plans) {
    const spec::Framework& f = entry.framework;
    if (entry.plan.gemm_precision == kernel::Precision::bf16 ||
        std::find(seen.begin(), seen.end(), f.name) != seen.end()) {
      continue;
    }
    seen.push_back(f.name);
    Collector c(seen.size() == 1 ? "gpu." + gpu.name + "." : "");
    if (seen.size() == 1) {
      c.add_given("fp8", gpu.fp8);
      c.add_given("fp4", gpu.fp4);
      c.add("low_precision_efficiency", gpu.low_precision_efficiency);
    }
    Collector of_framework("framework." + f.name + ".");
    of_framework.add_given("quantise_traffic", f.quantise_traffic);
    of_framework.add_given("quantise_weight_traffic", f.quantise_weight_traffic);
    of_framework.add_given("quantise_gradient_traffic", f.quantise_gradient_traffic);
    of_framework.add_given("requantise_traffic", f.requantise_traffic);
    of_framework.add_given("transpose_weight_traffic", f.transpose_weight_traffic);
    of_framework.add_given("quantise_kernels", f.quantise_kernels);
    of_framework.add_given("quantised_gather", f.quantised_gather);
    for (Collector* each : {&c, &of_framework}) {
      std::vector<results::Parameter> more = each->take();
      all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
  }
  return all;
}

}  // namespace

std::vector<results::Parameter> parameters_of(const scenario::Scenario& scenario) {
  std::vector<results::Parameter> all;
  const auto append = [&all](std::vector<results::Parameter> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  append(gpu_parameters(scenario.cluster.gpu));
  append(node_parameters(scenario));
  append(kernel_parameters(scenario));
  append(precision_parameters(scenario));
  std::vector<std::string> seen;
  for (const scenario::PlanEntry& entry : scenario.plans) {
    if (std::find(seen.begin(), seen.end(), entry.framework.name) == seen.end()) {
      seen.push_back(entry.framework.name);
      append(framework_parameters(entry.framework));
    }
  }
  return all;
}

}  // namespace ulysim::study
