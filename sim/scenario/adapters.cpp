#include "sim/scenario/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/named.h"

namespace ulysim::scenario {
namespace {

using workload::Adapters;

void read_targets(Section& lora, Adapters& adapters) {
  const std::vector<std::string>& known = workload::adapter_targets();
  for (const config::Node* item : lora.items("targets")) {
    const auto target = config::read<std::string>(*item, lora.path_of("targets"), lora.diagnostics());
    if (!target) {
      return;
    }
    if (std::find(known.begin(), known.end(), *target) == known.end()) {
      lora.diagnostics().error(item->where, fmt::format("'{}': unknown linear map '{}'{}", lora.path_of("targets"),
                                                        *target, did_you_mean(*target, known)));
    } else if (adapters.targets.empty() || !adapters.reach(*target)) {
      adapters.targets.push_back(*target);
    }
  }
}

}  // namespace

void read_adapters(Section& training, Training& out) {
  if (const auto index = training.word("base_precision")) {
    out.base_precision = static_cast<workload::BaseWeights>(*index);
  }
  const config::Node* node = training.find("trainable");
  if (node == nullptr) {
    return;
  }
  out.options.adapters.reset();
  if (node->kind != config::Node::Kind::mapping) {
    (void)training.word("trainable");
    return;
  }
  constexpr std::int64_t kMostRank = 65536;
  Adapters adapters;
  Section section(*node, training.path_of("trainable"), {"trainable"}, training.diagnostics());
  if (const config::Node* inner = section.find("lora")) {
    Section lora(*inner, section.path_of("lora"), {"lora"}, training.diagnostics());
    adapters.rank = lora.integer("rank", {1, kMostRank}).value_or(adapters.rank);
    read_targets(lora, adapters);
    lora.finish();
  } else {
    section.error_here("'lora' is needed");
  }
  section.finish();
  out.options.adapters = std::move(adapters);
}

void resolve_adapters(Section& section, const Training& training, strategies::Plan& plan) {
  if (plan.adapters) {
    plan.adapters->base = training.base_precision;
  } else if (training.base_precision != workload::BaseWeights::bf16) {
    section.error_here("base_precision nf4 is of frozen weights: it needs trainable: {lora: ...}");
  }
}

std::string text_of(const Adapters& adapters) {
  return adapters.targets.empty() ? fmt::format("rank {}", adapters.rank)
                                  : fmt::format("rank {} of {}", adapters.rank, fmt::join(adapters.targets, "+"));
}

}  // namespace ulysim::scenario
