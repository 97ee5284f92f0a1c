#include <fmt/format.h>

#include "sim/workload/op_graph.h"

namespace ulysim::workload {

const char* name(MeshAxis axis) {
  switch (axis) {
    case MeshAxis::tensor:
      return "tensor";
    case MeshAxis::ulysses:
      return "ulysses";
    case MeshAxis::ring:
      return "ring";
    case MeshAxis::data:
      return "data";
    case MeshAxis::expert:
      return "expert";
    case MeshAxis::expert_data:
      return "expert_data";
    case MeshAxis::pipeline:
      return "pipeline";
    case MeshAxis::shard:
      return "shard";
    case MeshAxis::replicate:
      return "replicate";
    case MeshAxis::expert_shard:
      return "expert_shard";
  }
  return "?";
}

const char* name(Dim dim) {
  constexpr std::array<const char*, 22> kNames{
      "batch",    "tokens",     "hidden",   "heads",    "kv_heads", "head_dim",  "ffn",     "vocab",
      "elements", "v_head_dim", "nope_dim", "q_latent", "kv_down",  "kv_latent", "experts", "slots",
      "router",   "adapter",    "matrices", "rows",     "columns",  "gram"};
  return kNames.at(static_cast<std::size_t>(dim));
}

const char* name(Layout layout) {
  constexpr std::array<const char*, 3> kNames{"contiguous", "zigzag", "striped"};
  return kNames.at(static_cast<std::size_t>(layout));
}

const char* name(MemoryKind kind) {
  constexpr std::array<const char*, kMemoryKinds> kNames{
      "weights",     "gradients",           "optimizer_states", "gathered_parameters",  "checkpoints",
      "activations", "attention_workspace", "logits",           "communication_buffers"};
  return kNames.at(static_cast<std::size_t>(kind));
}

const char* name(CollectiveKind kind) {
  constexpr std::array<const char*, kCollectiveKinds> kNames{"all_to_all", "all_gather", "reduce_scatter", "all_reduce",
                                                             "send_recv"};
  return kNames.at(static_cast<std::size_t>(kind));
}

const char* name(Stream stream) {
  constexpr std::array<const char*, kStreams> kNames{
      "compute",        "tensor_comm",      "ulysses_comm", "ring_comm",   "zero_gather",  "zero_reduce",
      "device_to_host", "host_to_device",   "host_work",    "expert_comm", "forward_send", "forward_receive",
      "backward_send",  "backward_receive", "nvme_read",    "nvme_write"};
  return kNames.at(static_cast<std::size_t>(stream));
}

const char* name(Purpose purpose) {
  constexpr std::array<const char*, kPurposes> kNames{
      "attention",         "gemm", "memory_bound", "optimizer", "tensor_parallel",
      "ulysses",           "ring", "parameters",   "gradients", "checkpoint_offload",
      "optimizer_offload", "host", "expert",       "pipeline",  "parameter_offload"};
  return kNames.at(static_cast<std::size_t>(purpose));
}

const char* name(Phase phase) {
  constexpr std::array<const char*, kPhases> kNames{"forward", "backward", "update"};
  return kNames.at(static_cast<std::size_t>(phase));
}

std::string to_string(AxisSet axes) {
  std::string text = "{";
  for (const MeshAxis axis : kAllAxes) {
    if (axes.contains(axis)) {
      text += text.size() > 1 ? "," : "";
      text += name(axis);
    }
  }
  return text + "}";
}

std::int64_t layer_number(const Instance& instance) {
  // The embedding stands before layer 0, and two ends before each further stage.
  return std::int64_t{instance.block} - 1 - 2 * std::int64_t{instance.virtual_stage};
}

TensorId BlockTemplate::add(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return TensorId(tensors.size() - 1);
}

}  // namespace ulysim::workload
