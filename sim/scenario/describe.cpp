#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/format.h"
#include "sim/scenario/adapters.h"
#include "sim/scenario/keys.h"
#include "sim/scenario/mask.h"
#include "sim/scenario/scenario.h"

namespace ulysim::scenario {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

template <class Enum>
std::string word_of(std::string_view section, std::string_view key, Enum value) {
  return find_key(section, key)->words[static_cast<std::size_t>(value)];
}

std::string yes_or_no(std::int64_t value) {
  return value != 0 ? "true" : "false";
}

std::string placement_text(const workload::Mesh& mesh) {
  std::vector<std::string> names;
  for (const workload::MeshAxis axis : mesh.placement) {
    if (axis == workload::MeshAxis::pipeline && mesh.size(axis) == 1) {
      continue;
    }
    names.emplace_back(name(axis));
  }
  return fmt::format("[{}]", fmt::join(names, ", "));
}

/// What only some plans have.
void add_sequences(const PlanEntry& entry, Options& options) {
  const strategies::Plan& plan = entry.plan;
  if (plan.documents) {
    const auto [shortest, longest] = plan.document_lengths();
    options.emplace_back("sequence_length.packed",
                         fmt::format("{} documents of {} to {} tokens", plan.documents->size(), shortest, longest));
  }
  if (entry.padding.rule != Padding::Rule::none) {
    options.emplace_back("pad_to_multiple", text_of(entry.padding));
  }
  if (!plan.lengths.empty()) {
    options.emplace_back("trained_lengths", fmt::format("[{}]", fmt::join(plan.lengths, ", ")));
  }
}

void add_adapters(const PlanEntry& entry, Options& options) {
  if (entry.plan.adapters) {
    options.emplace_back("trainable.lora", text_of(*entry.plan.adapters));
    options.emplace_back("base_precision", word_of("training", "base_precision", entry.plan.adapters->base));
  } else if (std::find(entry.overridden.begin(), entry.overridden.end(), "trainable") != entry.overridden.end()) {
    options.emplace_back("trainable", "all");
  }
}

}  // namespace

Options options_of(const PlanEntry& entry) {
  const strategies::Plan& plan = entry.plan;
  Options options;
  const auto add = [&](std::string_view key, std::string value) { options.emplace_back(key, std::move(value)); };
  const bool pipeline = plan.mesh.size(workload::MeshAxis::pipeline) > 1;
  for (const workload::MeshAxis axis : workload::kAxes) {
    if (axis != workload::MeshAxis::pipeline || pipeline) {
      add(name(axis), fmt::to_string(plan.mesh.size(axis)));
    }
  }
  if (pipeline) {
    add("virtual_stages", fmt::to_string(plan.virtual_stages));
    add("schedule", word_of("plan", "schedule", plan.virtual_stages > 1 ? 1 : 0));
  }
  if (plan.mesh.expert > 1) {
    add(name(workload::MeshAxis::expert), fmt::to_string(plan.mesh.expert));
  }
  if (plan.mesh.replicate > 1) {
    add("data_replicate", fmt::to_string(plan.mesh.replicate));
  }
  add("ring_layout", word_of("plan", "ring_layout", plan.ring_layout));
  add("ring_exchange", word_of("plan", "ring_exchange", plan.ring_exchange));
  if (plan.head_chunks > 1) {
    add("head_chunks", fmt::to_string(plan.head_chunks));
  }
  if (plan.sequence_chunk) {
    add("sequence_chunk", fmt::to_string(*plan.sequence_chunk));
  }
  add("placement", placement_text(plan.mesh));
  add("sequence_length", fmt::to_string(plan.sequence_length));
  add_sequences(entry, options);
  add("micro_batch", fmt::to_string(plan.micro_batch));
  add("gradient_accumulation", fmt::to_string(plan.accumulation));
  add("global_batch", fmt::to_string(plan.global_batch()));
  add("dtype", word_of("training", "dtype", plan.dtype));
  add("gemm_precision", word_of("training", "gemm_precision", plan.gemm_precision));
  add_adapters(entry, options);
  add("attention.implementation", word_of("attention", "implementation", plan.attention));
  add("attention.mask", mask_text(plan));
  add("recompute", plan.recompute_layers ? fmt::format("{{layers: {}}}", *plan.recompute_layers)
                                         : word_of("training", "recompute", plan.recompute));
  add("checkpoint_offload", word_of("training", "checkpoint_offload", plan.checkpoint_offload));
  add("zero", fmt::to_string(plan.zero));
  add("optimizer.name", word_of("optimizer", "name", plan.optimizer));
  add("optimizer.states", word_of("optimizer", "states", plan.optimizer_states));
  add("optimizer.offload", word_of("optimizer", "offload", plan.optimizer_offload));
  add("parameter_offload", word_of("training", "parameter_offload", plan.parameter_offload));
  add("tiled_mlp", yes_or_no(plan.tiled_mlp ? 1 : 0));
  add("tiled_loss", yes_or_no(plan.tiled_loss ? 1 : entry.framework.loss_always_tiled.value));
  add("framework", entry.framework.name);
  if (plan.expert_imbalance > 1.0) {
    add("expert_imbalance", fmt::format("{}", plan.expert_imbalance));
  }
  if (entry.total_tokens) {
    add("total_tokens", fmt::to_string(*entry.total_tokens));
  }
  return options;
}

std::string describe(const Scenario& scenario) {
  const spec::Cluster& cluster = scenario.cluster;
  std::string out = fmt::format(
      "scenario: {}\nmodel: {} ({} layers, hidden {}, {} heads, {} key/value heads, vocabulary {})\n"
      "cluster: {} x {}, {} GPUs {} ({} of memory each), {}, oversubscription {}\n",
      scenario.name, scenario.model_name, scenario.model.layers, scenario.model.hidden, scenario.model.heads,
      scenario.model.kv_heads, scenario.model.vocab, cluster.nodes, cluster.node.name, cluster.gpus, cluster.gpu.name,
      human(cluster.gpu.memory.value), cluster.network.topology, cluster.network.oversubscription);
  for (const PlanEntry& entry : scenario.plans) {
    out += fmt::format("plan {}:\n", entry.plan.name);
    for (const auto& [key, value] : options_of(entry)) {
      out += fmt::format("  {}: {}\n", key, value);
    }
  }
  return out;
}

}  // namespace ulysim::scenario
