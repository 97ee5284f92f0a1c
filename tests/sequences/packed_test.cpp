// Which question this answers: what do documents packed into one sequence do to a split that cuts the sequence, and to
// one that cuts the heads?

#include "sim/workload/training_step.h"
#include "tests/sequences/lab.h"

namespace ulysim::study::sequences {
namespace {

constexpr const char* kSkewed = "{sequence_length: {packed: [192Ki, 16Ki, 16Ki, 16Ki, 16Ki]}, tiled_loss: true}";

TEST(Packed, attention_pairs_are_those_of_the_documents) {
  const scenario::Scenario scenario = parse("{sequence_length: {packed: [192Ki, 64Ki]}, tiled_loss: true}",
                                            "[{ulysses: 8}, {ulysses: 8, sequence_length: 192Ki, name: long}, "
                                            "{ulysses: 8, sequence_length: 64Ki, name: short}]");
  std::vector<double> flops;
  for (const scenario::PlanEntry& entry : scenario.plans) {
    const auto stages = run_stages(scenario, build_machine(scenario), entry, Stage::parallel);
    flops.push_back(workload::model_flops(stages->parallel).value());
  }
  EXPECT_NEAR(flops[0] / (flops[1] + flops[2]), 1.0, 1e-12) << "packing saves and adds no model FLOPs";
}

TEST(Packed, ulysses_stays_balanced_and_a_contiguous_ring_does_not) {
  const scenario::Scenario scenario =
      parse(kSkewed, "[{ulysses: 8}, {ring: 8, ring_layout: contiguous}, {ring: 8, ring_layout: striped}]");
  const auto f = figures_of(scenario);
  EXPECT_EQ(f[0].attention_imbalance, 1.0);
  // 32Ki = 1 a rank: ranks 0 to 5 hold the document of 6, rank i of it i + 1/2 squares; ranks 6 and 7 hold two small
  // documents each, 2·(1/2)²/2 = 1/4. Most 5.5, average (18 + 1/2)/8.
  EXPECT_NEAR(f[1].attention_imbalance.value(), 5.5 / (18.5 / 8), 1e-4);
  EXPECT_NEAR(f[2].attention_imbalance.value(), 1.0, 1e-3) << "stripes share every document";
  EXPECT_GT(part(f[1], "attention"), 1.5 * part(f[0], "attention")) << "the busiest rank's";
  EXPECT_GT(f[1].step_time, f[0].step_time);
}

TEST(Packed, zigzag_balances_one_document_and_not_many) {
  const auto one = figures_of(parse("{sequence_length: {packed: [256Ki]}, tiled_loss: true}", "[{ring: 8}]"));
  EXPECT_EQ(one[0].attention_imbalance, 1.0);
  const auto plain = figures_of(parse("{sequence_length: 256Ki, tiled_loss: true}", "[{ring: 8}]"));
  EXPECT_EQ(one[0].step_time, plain[0].step_time) << "one document is the plain sequence";
  const auto many = figures_of(parse(kSkewed, "[{ring: 8}]"));
  EXPECT_GT(many[0].attention_imbalance.value(), 1.2);
}

TEST(Packed, model_flops_are_those_of_the_logical_graph_under_every_split) {
  const scenario::Scenario scenario =
      parse("{sequence_length: {distribution: {kind: lognormal, mean: 8Ki, sigma: 1.5, seed: 5, pack_to: 128Ki}}}",
            "[{ulysses: 8}, {ring: 8}, {ring: 8, ring_layout: striped}, {ring: 8, ring_exchange: all-gather}, "
            "{ulysses: 4, ring: 2}, {tensor: 2, ring: 4}, {data: 8}]");
  for (const scenario::PlanEntry& entry : scenario.plans) {
    const auto stages = run_stages(scenario, build_machine(scenario), entry, Stage::parallel);
    EXPECT_NEAR(workload::model_flops(stages->parallel) / workload::model_flops(stages->logical), 1.0, 1e-12)
        << entry.plan.name;
  }
}

}  // namespace
}  // namespace ulysim::study::sequences
