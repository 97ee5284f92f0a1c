#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/strategies/strategy.h"
#include "sim/workload/attention_workspace.h"
#include "sim/workload/shape.h"
#include "sim/workload/verify.h"

namespace ulysim::strategies {

// One factory per pass; each implementation is a .cpp without a header.
const Strategy& pipeline_strategy();
const Strategy& data_strategy();
const Strategy& tensor_strategy();
const Strategy& head_chunks_strategy();
const Strategy& ulysses_strategy();
const Strategy& ring_strategy();
const Strategy& sequence_chunks_strategy();
const Strategy& expert_strategy();
const Strategy& tiling_strategy();
const Strategy& recompute_strategy();
const Strategy& checkpoint_offload_strategy();
const Strategy& zero_strategy();
const Strategy& optimizer_strategy();
const Strategy& optimizer_offload_strategy();
const Strategy& schedule_strategy();

std::span<const Strategy* const> strategies() {
  // The order is part of the contract: stages come first, so that every pass shards their ends; ulysses before ring
  // makes the ring carry head-sharded keys, and head chunks before both, so that each round has exchanges of its own;
  // expert comes when all who split samples are done, since it cuts the same ranks another way; recompute clones what
  // these inserted; ZeRO sees every reader of a weight, the recomputing ones too; the optimizer after it, on the states
  // as they are cut; the schedule orders what is settled.
  static const std::array kPasses{
      &pipeline_strategy(),
      &data_strategy(),
      &tensor_strategy(),
      &head_chunks_strategy(),
      &ulysses_strategy(),
      &ring_strategy(),
      &sequence_chunks_strategy(),
      &expert_strategy(),
      &tiling_strategy(),
      &recompute_strategy(),
      &checkpoint_offload_strategy(),
      &zero_strategy(),
      &optimizer_strategy(),
      &optimizer_offload_strategy(),
      &schedule_strategy(),
  };
  return kPasses;
}

namespace {

/// Tokens are split over three axes by as many passes: whether they divide is asked of the whole plan.
std::vector<Infeasible> undivided_sequence(const Plan& plan) {
  using workload::MeshAxis;
  const workload::Mesh& mesh = plan.mesh;
  const std::int64_t sequence = plan.sequence_length;
  const std::int64_t parts = plan.sequence_parts();
  if (sequence % parts == 0) {
    return {};
  }
  const std::int64_t below = sequence / parts * parts;
  const bool zigzag = plan.ring_layout == workload::Layout::zigzag && mesh.size(MeshAxis::ring) > 1;
  return {{fmt::format("{} tokens do not divide into {} equal parts (tensor {} · ulysses {} · ring {}{})", sequence,
                       parts, mesh.size(MeshAxis::tensor), mesh.size(MeshAxis::ulysses), mesh.size(MeshAxis::ring),
                       zigzag ? " · 2 for zigzag" : ""),
           {{"sequence_length", static_cast<double>(sequence)}, {"parts", static_cast<double>(parts)}},
           below > 0 ? fmt::format("pad to {} tokens, or cut to {}", below + parts, below)
                     : fmt::format("pad to {} tokens", parts)}};
}

}  // namespace

const Strategy* find_strategy(std::string_view name) {
  const auto all = strategies();
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Strategy* pass) { return pass->name() == name; });
  return found == all.end() ? nullptr : *found;
}

std::vector<Infeasible> check(const PlanContext& context) {
  std::vector<Infeasible> reasons;
  for (const std::string& name : passes_of(*context.plan)) {
    if (find_strategy(name) == nullptr) {
      reasons.push_back({.reason = fmt::format("this build has no pass '{}'", name)});
    }
  }
  for (const Strategy* pass : strategies()) {
    for (Infeasible& reason : pass->check(context)) {
      reasons.push_back(std::move(reason));
    }
  }
  for (Infeasible& reason : undivided_sequence(*context.plan)) {
    reasons.push_back(std::move(reason));
  }
  return reasons;
}

workload::OpGraph parallelize(const PlanContext& context, workload::OpGraph graph) {
  graph.mesh = context.plan->mesh;
  for (const Strategy* pass : strategies()) {
    pass->apply(context, graph);
    const auto findings = workload::verify_shapes(graph);
    ULYSIM_CHECK(findings.empty(), "after pass {}: {} ({} findings)", pass->name(), findings.front(), findings.size());
  }
  workload::size_attention_workspaces(graph);
  workload::place_lifetimes(graph);
  workload::tabulate_attention(graph);
  const auto findings = workload::verify(graph);
  ULYSIM_CHECK(findings.empty(), "the parallel graph: {} ({} findings)", findings.front(), findings.size());
  return graph;
}

}  // namespace ulysim::strategies
