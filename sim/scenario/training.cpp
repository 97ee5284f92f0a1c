#include "sim/scenario/training.h"

#include <fmt/format.h>

#include <utility>

#include "sim/scenario/mask.h"

namespace ulysim::scenario {
namespace {

using config::Node;

constexpr double kMostImbalance = 1000.0;

void read_batch(Section& section, Training& training) {
  const auto accumulation = section.integer("gradient_accumulation", {1, kMostMicroSteps});
  const auto batch = section.integer("global_batch", {1, kMostSequences});
  if (accumulation && batch) {
    section.error("global_batch", "stands beside gradient_accumulation; give one, the other follows");
  }
  if (accumulation || batch) {
    training.accumulation = accumulation;
    training.global_batch = batch;
  }
  if (const auto tokens = section.integer("total_tokens", {1, kMostTokens})) {
    training.total_tokens = *tokens;
  }
}

void read_attention(Section& outer, Training& training) {
  const Node* node = outer.find("attention");
  if (node == nullptr) {
    return;
  }
  Section section(*node, outer.path_of("attention"), {"attention"}, outer.diagnostics());
  if (const auto index = section.word("implementation")) {
    training.options.attention = static_cast<kernel::AttentionKernel>(*index);
  }
  read_mask(section, training.options);
  section.finish();
}

strategies::Offload offload_of(std::size_t index) {
  return index == 0 ? strategies::Offload::none : strategies::Offload::cpu;
}

void read_optimizer(Section& outer, Training& training) {
  const Node* node = outer.find("optimizer");
  if (node == nullptr) {
    return;
  }
  Section section(*node, outer.path_of("optimizer"), {"optimizer"}, outer.diagnostics());
  (void)section.word("name");
  (void)section.word("states");
  if (const auto index = section.word("offload")) {
    training.options.optimizer_offload = offload_of(*index);
  }
  section.finish();
}

}  // namespace

void read_training(Section& section, Training& training) {
  read_sequence(section, training);
  read_batch(section, training);
  (void)section.word("dtype");
  (void)section.word("gemm_precision");
  read_attention(section, training);
  if (const auto index = section.word("recompute")) {
    training.options.recompute = static_cast<strategies::Recompute>(*index);
  }
  if (const auto index = section.word("checkpoint_offload")) {
    training.options.checkpoint_offload = offload_of(*index);
  }
  training.options.zero = section.integer("zero", {0, 3}).value_or(training.options.zero);
  read_optimizer(section, training);
  if (const auto index = section.word("parameter_offload")) {
    training.options.parameter_offload = offload_of(*index);
  }
  training.options.tiled_mlp = section.maybe<bool>("tiled_mlp").value_or(training.options.tiled_mlp);
  training.options.tiled_loss = section.maybe<bool>("tiled_loss").value_or(training.options.tiled_loss);
  training.options.expert_imbalance =
      section.number("expert_imbalance", 1.0, kMostImbalance).value_or(training.options.expert_imbalance);
  if (auto name = section.maybe<std::string>("framework")) {
    training.framework = *std::move(name);
    training.framework_at = section.find("framework")->where;
  }
}

std::vector<std::string> training_keys_in(const Node& node) {
  std::vector<std::string> found;
  for (const Key& key : keys()) {
    const Node* value = key.section == "training" ? node.find(key.name) : nullptr;
    if (value == nullptr || value->kind == Node::Kind::null) {
      continue;
    }
    // A length is one value, however it is written.
    if (value->kind != Node::Kind::mapping || key.name == "sequence_length") {
      found.emplace_back(key.name);
      continue;
    }
    for (const Key& inner : keys()) {
      if (inner.section == key.name && value->find(inner.name) != nullptr) {
        found.push_back(fmt::format("{}.{}", key.name, inner.name));
      }
    }
  }
  return found;
}

}  // namespace ulysim::scenario
