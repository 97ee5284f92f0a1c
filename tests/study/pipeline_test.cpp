// Which question this answers: do pipelines of a real model send, wait and hold what their formulas say?

#include <gtest/gtest.h>

#include "sim/memory/accountant.h"
#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

constexpr std::int64_t kActivations = 8192 * 4096 * 2;  // s·h·e of one sequence, bytes

scenario::Scenario pipelines() {
  return parse(
      {.training = "{sequence_length: 8Ki, zero: 1, gradient_accumulation: 16, recompute: full}",
       .plans = "[{tensor: 2, pipeline: 4}, {tensor: 2, pipeline: 4, virtual_stages: 2}, {tensor: 2, data: 4}]"});
}

TEST(PipelineStudy, AMiddleStageSendsOneActivationEachWayForEveryMicroBatch) {
  const scenario::Scenario s = pipelines();
  // 16 micro-batches, forward and backward, half of the tokens at each tensor rank; two parts a stage double it.
  EXPECT_EQ(bytes_of(figures_of(s, 0).communication_by_purpose, "pipeline"), 16 * 2 * kActivations / 2);
  EXPECT_EQ(bytes_of(figures_of(s, 1).communication_by_purpose, "pipeline"), 2 * 16 * 2 * kActivations / 2);
  EXPECT_EQ(bytes_of(figures_of(s, 2).communication_by_purpose, "pipeline"), 0);
}

TEST(PipelineStudy, TheBubbleIsItsFormulaAndInterleavingShortensIt) {
  const scenario::Scenario s = pipelines();
  const auto bubble = [&](std::size_t plan) {
    const results::Figures f = figures_of(s, plan);
    Duration sum{};
    for (const results::NamedDuration& part : f.breakdown) {
      sum += part.time;
    }
    EXPECT_EQ(sum, f.step_time);
    EXPECT_LE(*f.lower_bound, f.step_time);
    return static_cast<double>(time_of(f.breakdown, "bubble")) / static_cast<double>(f.step_time.value());
  };
  // (p−1)/(m+p−1) = 3/19 for equal stages; the head makes the last one longer, so the others wait for it as well.
  const double plain = bubble(0);
  const double interleaved = bubble(1);
  EXPECT_GT(plain, 3.0 / 19);
  EXPECT_LT(plain, 2 * 3.0 / 19);
  EXPECT_LT(interleaved, plain - 0.3 * 3.0 / 19) << "half of the formula's bubble less, with twice the messages";
}

TEST(PipelineStudy, EachStageHoldsItsShareOfTheWeights) {
  // 32 layers over four stages; the table of 128,256 × 4096 stands on the first and again, as the head, on the last.
  const scenario::Scenario s = pipelines();
  const std::int64_t layer = 2 * 4096 * 128 * (32 + 8) + 3 * 4096 * 14336 + 2 * 4096;
  const std::int64_t table = 128256LL * 4096;
  const auto stages = run_stages(s, build_machine(s), s.plans[0], Stage::timeline);
  ASSERT_EQ(stages->schedules.size(), 4U);
  for (const results::RankTimeline& rank : stages->timeline.ranks) {
    std::int64_t weights = 0;
    for (const memory::Holding& holding :
         memory::account(stages->parallel, stages->schedule_of(rank), rank).gpu.holdings) {
      weights += holding.kind == workload::MemoryKind::weights ? holding.bytes : 0;
    }
    const bool end = rank.role == 0 || rank.role == 3;
    // bf16, half of the matrices at each of two tensor ranks; norms are whole on both.
    EXPECT_NEAR(static_cast<double>(weights), static_cast<double>(8 * layer + (end ? table : 0)), 1e5) << rank.role;
  }
}

TEST(PipelineStudy, ModelFlopsAreThoseOfAnyPlan) {
  const scenario::Scenario s = pipelines();
  for (std::size_t plan : {0U, 1U}) {
    const results::Figures f = figures_of(s, plan);
    const results::Figures replicas = figures_of(s, 2);  // four times the sequences
    EXPECT_NEAR(4 * f.model_tflops_per_gpu * seconds(f.step_time) /
                    (replicas.model_tflops_per_gpu * seconds(replicas.step_time)),
                1, 1e-12);
  }
}

}  // namespace
}  // namespace ulysim::study
