#include "sim/scenario/mask.h"

#include <fmt/format.h>

#include "sim/scenario/training.h"

namespace ulysim::scenario {
namespace {

using workload::Mask;

constexpr std::int64_t kLargestBlock = 1 << 16;

void read_block_sparse(Section& outer, strategies::Plan& plan) {
  const std::size_t before = outer.diagnostics().list().size();
  Section section(*outer.find("block_sparse"), outer.path_of("block_sparse"), {"block_sparse"}, outer.diagnostics());
  workload::BlockSparse pattern;
  pattern.block = section.integer("block", {1, kLargestBlock}).value_or(pattern.block);
  const auto local = section.integer("local", {1, kLongestSequence});
  const auto global = section.integer("global", {0, kLongestSequence});
  pattern.stride = section.integer("stride", {1, kLongestSequence});
  pattern.density = section.number("density", 0.0, 1.0);
  const auto seed = section.integer("seed", {0, kMostTokens});
  const auto causal = section.maybe<bool>("causal");
  section.finish();
  if (outer.diagnostics().list().size() != before) {
    return;
  }
  const bool fixed = local || global || pattern.stride;
  if (fixed == pattern.density.has_value()) {
    section.error_here("a pattern is either 'density' or some of 'local', 'global' and 'stride'");
  } else if (seed && !pattern.density) {
    section.error("seed", "belongs to 'density' only");
  } else if (pattern.density && !causal.value_or(true)) {
    section.error("causal", "blocks picked by density are causal");
  }
  pattern.local = local.value_or(pattern.local);
  pattern.global = global.value_or(pattern.global);
  pattern.seed = static_cast<std::uint64_t>(seed.value_or(0));
  plan.mask = causal.value_or(true) ? Mask::Kind::causal : Mask::Kind::full;
  plan.block_sparse = pattern;
}

}  // namespace

void read_mask(Section& attention, strategies::Plan& plan) {
  const config::Node* node = attention.find("mask");
  if (node == nullptr) {
    return;
  }
  plan.sliding_window.reset();
  plan.block_sparse.reset();
  plan.mask = Mask::Kind::causal;
  if (node->kind != config::Node::Kind::mapping) {
    if (const auto index = attention.word("mask")) {
      plan.mask = static_cast<Mask::Kind>(*index);
    }
    return;
  }
  Section section(*node, attention.path_of("mask"), {"mask"}, attention.diagnostics());
  const bool window = section.find("sliding_window") != nullptr;
  if (window == (section.find("block_sparse") != nullptr)) {
    section.error_here("one of 'sliding_window' and 'block_sparse' is needed");
  } else if (window) {
    plan.sliding_window = section.integer("sliding_window", {1, kLongestSequence});
  } else {
    read_block_sparse(section, plan);
  }
  section.finish();
}

std::string mask_text(const strategies::Plan& plan) {
  if (plan.sliding_window) {
    return fmt::format("{{sliding_window: {}}}", *plan.sliding_window);
  }
  if (!plan.block_sparse) {
    return find_key("attention", "mask")->words[static_cast<std::size_t>(plan.mask)];
  }
  const workload::BlockSparse& p = *plan.block_sparse;
  std::string inner = fmt::format("block: {}", p.block);
  if (p.density) {
    inner += fmt::format(", density: {}, seed: {}", *p.density, p.seed);
  } else {
    inner += fmt::format(", local: {}", p.local);
    inner += p.global > 0 ? fmt::format(", global: {}", p.global) : "";
    inner += p.stride ? fmt::format(", stride: {}", *p.stride) : "";
  }
  inner += plan.mask == Mask::Kind::full ? ", causal: false" : "";
  return fmt::format("{{block_sparse: {{{}}}}}", inner);
}

}  // namespace ulysim::scenario
