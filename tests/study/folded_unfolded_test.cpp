// Which question this answers: on the graphs of real plans, is folding exact to the picosecond?

#include <gtest/gtest.h>

#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

void expect_equal(const scenario::Scenario& scenario) {
  const Machine machine = build_machine(scenario);
  for (const scenario::PlanEntry& entry : feasible(scenario)) {
    SCOPED_TRACE(entry.plan.name);
    const auto stages = run_stages(scenario, machine, entry, Stage::timeline);
    const results::Timeline unfolded = engine::simulate(
        stages->parallel, stages->schedules, hardware(scenario, machine, entry), {.fold = engine::FoldMode::unfolded});
    const auto ranks = static_cast<std::size_t>(stages->parallel.mesh.world());
    ASSERT_EQ(unfolded.ranks.size(), ranks) << "unfolded: every rank for itself";
    EXPECT_EQ(stages->timeline.end, unfolded.end);
    std::size_t members = 0;
    for (const results::RankTimeline& folded : stages->timeline.ranks) {
      members += folded.members.size();
      for (const RankId rank : folded.members) {
        const results::RankTimeline& alone = unfolded.ranks[rank.index()];
        ASSERT_EQ(alone.representative, rank);
        for (std::size_t op = 0; op < folded.spans.size(); ++op) {
          const std::string& name = stages->schedule_of(folded).ops[op].op->name;
          ASSERT_EQ(folded.spans[op].begin, alone.spans[op].begin) << name << " at rank " << rank.index();
          ASSERT_EQ(folded.spans[op].end, alone.spans[op].end) << name << " at rank " << rank.index();
        }
      }
    }
    EXPECT_EQ(members, ranks);
  }
}

class OneNode : public testing::TestWithParam<std::string> {};

TEST_P(OneNode, FoldedIsUnfolded) {
  expect_equal(load_run(GetParam()));
}

std::vector<std::string> one_node_runs() {
  std::vector<std::string> names = run_names();
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const std::string& name) { return load_run(name).cluster.nodes > 1; }),
              names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Runs, OneNode, testing::ValuesIn(one_node_runs()), test_name);

TEST(Folding, HoldsForUnevenRings) {
  // Contiguous causal: every rank has other work. Striped: nearly equal work, other pairs.
  expect_equal(parse({.training = "{sequence_length: 64Ki, tiled_loss: true}",
                      .plans = "[{ring: 8, ring_layout: contiguous}, {ring: 8, ring_layout: striped}, "
                               "{ulysses: 2, ring: 4, ring_layout: contiguous}, {ring: 8, ring_exchange: all-gather}, "
                               "{ring: 4, data: 2, ring_layout: contiguous, gradient_accumulation: 2}]"}));
}

TEST(Folding, HoldsForAdaptersAndLowPrecision) {
  expect_equal(parse({.training = "{sequence_length: 16Ki, framework: megatron-core, tiled_loss: true, "
                                  "trainable: {lora: {rank: 8}}, base_precision: nf4}",
                      .plans = "[{ulysses: 8}, {tensor: 4, data: 2, zero: 1}, {data: 8, zero: 3, gemm_precision: fp8}, "
                               "{ring: 4, tensor: 2, gemm_precision: fp8, trainable: all, base_precision: bf16}, "
                               "{data: 8, framework: trl-fsdp2}]"}));
}

TEST(Folding, HoldsOnTwoNodes) {
  expect_equal(
      parse({.cluster = "{node: dgx-h100, nodes: 2}",
             .training = "{sequence_length: 64Ki, tiled_loss: true, checkpoint_offload: cpu, "
                         "optimizer: {name: adamw, states: fp32, offload: cpu}}",
             .plans = "[{ulysses: 16}, {ring: 16}, {ulysses: 8, ring: 2}, {tensor: 8, data: 2}, "
                      "{ulysses: 2, ring: 2, tensor: 2, data: 2, name: all-four}, "
                      "{ulysses: 8, ring: 2, placement: [ring, ulysses, data, tensor], name: ring-inside}, "
                      "{ulysses: 8, head_chunks: 4, data: 2}, {ulysses: 4, ring: 2, head_chunks: 2, data: 2}, "
                      "{ulysses: 8, sequence_chunk: 16Ki, data: 2}, "
                      "{tensor: 2, pipeline: 4, data: 2, zero: 1, gradient_accumulation: 8, virtual_stages: 2}, "
                      "{ring: 2, pipeline: 4, data: 2, zero: 0, gradient_accumulation: 3, "
                      "ring_layout: contiguous, placement: [pipeline, ring, data]}]"}));
}

TEST(Folding, HoldsWhereStatesAndCheckpointsAreOnDrives) {
  expect_equal(parse({.cluster = "{node: dgx-h100, nodes: 2}",
                      .training = "{sequence_length: 64Ki, tiled_loss: true, checkpoint_offload: nvme, "
                                  "optimizer: {offload: nvme}}",
                      .plans = "[{ulysses: 8}, {ring: 4, ring_layout: contiguous, recompute: {layers: 10}}, "
                               "{tensor: 8, optimizer: {name: muon, offload: none}}]"}));
}

TEST(Folding, HoldsForExperts) {
  expect_equal(parse({.model = "mixtral-8x7b",
                      .cluster = "{node: dgx-h100, nodes: 2}",
                      .training = "{sequence_length: 32Ki, tiled_loss: true}",
                      .plans = "[{expert: 8}, {ulysses: 8, expert: 4}, {ulysses: 4, tensor: 2, expert: 8}, "
                               "{ring: 4, ring_layout: contiguous, expert: 2}, {expert: 4, zero: 1}]"}));
}

TEST(Folding, HoldsForReplicasAndOffloadedParameters) {
  expect_equal(parse({.cluster = "{node: dgx-h100, nodes: 2}",
                      .training = "{sequence_length: 32Ki, tiled_loss: true, framework: torchtitan}",
                      .plans = "[{data_replicate: 2}, {ulysses: 8, data_replicate: 4}, {ring: 4, data_replicate: 8, "
                               "ring_layout: contiguous}, {ulysses: 4, parameter_offload: cpu, framework: "
                               "deepspeed-hf}, {ulysses: 8, parameter_offload: nvme, framework: deepspeed-hf}]"}));
}

}  // namespace
}  // namespace ulysim::study
