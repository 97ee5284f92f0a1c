#include "sim/scenario/training.h"

#include <fmt/format.h>

#include <utility>

#include "sim/scenario/adapters.h"
#include "sim/scenario/mask.h"

namespace ulysim::scenario {
namespace {

using config::Node;

constexpr double kMostImbalance = 1000.0;
constexpr std::int64_t kMostLayers = 1 << 20;

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

/// A word, or {layers: n}: only so many layers, whole.
void read_recompute(Section& outer, strategies::Plan& plan) {
  const Node* node = outer.find("recompute");
  if (node == nullptr || node->kind != Node::Kind::mapping) {
    if (const auto index = outer.word("recompute")) {
      plan.recompute = static_cast<strategies::Recompute>(*index);
      plan.recompute_layers.reset();
    }
    return;
  }
  Section section(*node, outer.path_of("recompute"), {"recompute"}, outer.diagnostics());
  const auto layers = section.integer("layers", {0, kMostLayers});
  if (section.find("layers") == nullptr) {
    section.error_here("'layers' is needed");
  }
  plan.recompute = layers.value_or(1) == 0 ? strategies::Recompute::none : strategies::Recompute::full;
  plan.recompute_layers = layers.value_or(1) == 0 ? std::nullopt : layers;
  section.finish();
}

void read_optimizer(Section& outer, Training& training) {
  const Node* node = outer.find("optimizer");
  if (node == nullptr) {
    return;
  }
  Section section(*node, outer.path_of("optimizer"), {"optimizer"}, outer.diagnostics());
  strategies::Plan& plan = training.options;
  if (const auto index = section.word("name")) {
    plan.optimizer = static_cast<strategies::Optimizer>(*index);
  }
  if (const auto index = section.word("states")) {
    plan.optimizer_states = static_cast<strategies::OptimizerStates>(*index);
  }
  if (const auto index = section.word("offload")) {
    plan.optimizer_offload = static_cast<strategies::Offload>(*index);
  }
  section.finish();
}

}  // namespace

void read_training(Section& section, Training& training) {
  read_sequence(section, training);
  read_batch(section, training);
  if (const auto index = section.word("dtype")) {
    training.options.dtype = static_cast<strategies::Dtype>(*index);
  }
  if (const auto index = section.word("gemm_precision")) {
    training.options.gemm_precision = static_cast<kernel::Precision>(*index);
  }
  read_adapters(section, training);
  read_attention(section, training);
  read_recompute(section, training.options);
  if (const auto index = section.word("checkpoint_offload")) {
    training.options.checkpoint_offload = static_cast<strategies::Offload>(*index);
  }
  training.options.zero = section.integer("zero", {0, 3}).value_or(training.options.zero);
  read_optimizer(section, training);
  if (const auto index = section.word("parameter_offload")) {
    training.options.parameter_offload = static_cast<strategies::Offload>(*index);
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
