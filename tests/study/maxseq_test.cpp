// Which question this answers: is the longest sequence really the longest, and is what stops it named rightly?

#include "sim/study/maxseq.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "sim/study/length_search.h"
#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

using results::Fit;
using results::Limit;
using results::LongestSequence;

results::PlanResult longest(const scenario::Scenario& scenario, std::size_t plan = 0) {
  const Machine machine = build_machine(scenario);
  results::PlanResult result = longest_of(scenario, machine, scenario.plans.at(plan), {});
  result.longest->lifts = lifts_of(scenario, machine, scenario.plans.at(plan), *result.longest);
  return result;
}

results::Figures at(scenario::Scenario scenario, std::size_t plan, std::int64_t tokens) {
  scenario.plans.at(plan).plan.sequence_length = tokens;
  return figures_of(scenario, plan);
}

TEST(Maxseq, IsWhatBruteForceFinds) {
  // A GPU just large enough for a length drawn at random; then every length around it is simulated.
  constexpr std::uint64_t kSeed = 20250614;
  std::mt19937_64 bits(kSeed);
  const scenario::Scenario whole =
      parse({.model = "qwen3-0.6b",
             .training = "{sequence_length: 4096}",
             .plans = "[{ulysses: 8}, {ring: 8}, {tensor: 8}, {ulysses: 2, ring: 2, data: 2}, "
                      "{ulysses: 8, tiled_loss: true, tiled_mlp: true}, {ring: 4, data: 2, checkpoint_offload: cpu}]"});
  const Machine machine = build_machine(whole);
  for (std::size_t p = 0; p < whole.plans.size(); ++p) {
    const std::size_t drawn = 300 + bits() % 1000;
    scenario::Scenario small = whole;
    small.cluster.gpu.memory.value =
        LengthSearch(whole, machine, whole.plans[p]).probe(drawn).plan.figures->peak_gpu_memory;
    LengthSearch search(small, machine, small.plans[p]);
    const std::size_t best = search.longest(1 + bits() % 2000);
    std::size_t brute = 0;
    for (std::size_t i = drawn - 20; i <= drawn + 20; ++i) {
      brute = at(small, p, search.lengths().tokens(i)).fit() != Fit::no ? i : brute;
    }
    EXPECT_GE(brute, drawn) << "a peak that is the capacity fits";
    EXPECT_EQ(best, brute) << whole.plans[p].plan.name << ", drawn " << drawn << ", seed " << kSeed;
    EXPECT_LE(search.simulated(), 16U) << whole.plans[p].plan.name << ": a handful of simulations";
  }
}

class MaxseqOfRuns : public testing::TestWithParam<std::string> {};

TEST_P(MaxseqOfRuns, FitsAndTheNextLengthDoesNot) {
  const scenario::Scenario scenario = load_run(GetParam());
  const results::StudyResult study = maxseq(scenario, {});
  ASSERT_EQ(study.plans.size(), scenario.plans.size());
  for (std::size_t p = 0; p < study.plans.size(); ++p) {
    const results::PlanResult& plan = study.plans[p];
    SCOPED_TRACE(plan.name);
    ASSERT_TRUE(plan.longest);
    const LongestSequence& found = *plan.longest;
    if (found.limit == Limit::heads) {
      EXPECT_FALSE(found.tokens);
      EXPECT_FALSE(plan.feasible());
      continue;
    }
    ASSERT_TRUE(found.tokens && found.next_tokens);
    EXPECT_TRUE(plan.fits());
    EXPECT_EQ(plan.figures->peak_gpu_memory, at(scenario, p, *found.tokens).peak_gpu_memory)
        << "the figures are those of the longest length";
    const results::Figures next = at(scenario, p, *found.next_tokens);
    EXPECT_EQ(next.fit(), Fit::no);
    EXPECT_EQ(found.limit, next.gpu_fit == Fit::no ? Limit::gpu_memory : Limit::host_memory);
    EXPECT_LE(*found.next_tokens - *found.tokens, *found.tokens / 100) << "to one percent";
    ASSERT_FALSE(found.reasons.empty());
    EXPECT_THAT(found.reasons, testing::Each(testing::StartsWith("does not fit")));
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, MaxseqOfRuns, testing::ValuesIn(run_names()), test_name);

TEST(Maxseq, DoesNotDependOnWhereItBegins) {
  const auto from = [](const char* length) {
    return maxseq(parse({.training = std::string("{sequence_length: ") + length + "}",
                         .plans = "[{ulysses: 8, tiled_loss: true}, {ring: 8}]"}),
                  {});
  };
  const results::StudyResult near = from("128Ki");
  for (const char* length : {"8", "1000", "16Mi"}) {
    const results::StudyResult far = from(length);
    for (std::size_t p = 0; p < near.plans.size(); ++p) {
      EXPECT_EQ(far.plans[p].longest->tokens, near.plans[p].longest->tokens) << length << ", plan " << p;
    }
  }
}

TEST(Maxseq, MemoryAloneIsTheMemoryOfTheWholeFigures) {
  const scenario::Scenario scenario = load_run("llama3-8b-1m-8xh100");
  const Machine machine = build_machine(scenario);
  for (const scenario::PlanEntry& entry : scenario.plans) {
    const results::PlanResult part = simulate(scenario, machine, entry, {.detail = Detail::memory});
    const results::PlanResult whole = simulate(scenario, machine, entry, {});
    EXPECT_EQ(part.figures->peak_gpu_memory, whole.figures->peak_gpu_memory);
    EXPECT_EQ(part.figures->peak_host_memory_per_node, whole.figures->peak_host_memory_per_node);
    EXPECT_EQ(part.figures->step_time, whole.figures->step_time);
    EXPECT_EQ(part.does_not_fit, whole.does_not_fit);
  }
}

TEST(Limit, HeadsStopAtAnyLength) {
  const results::PlanResult plan =
      longest(parse({.model = "qwen2.5-7b", .training = "{sequence_length: 64Ki}", .plans = "[{ulysses: 8}]"}));
  EXPECT_EQ(plan.longest->limit, Limit::heads) << "28 heads";
  EXPECT_FALSE(plan.longest->tokens);
  EXPECT_FALSE(plan.figures);
  EXPECT_THAT(plan.longest->reasons, testing::ElementsAre(testing::HasSubstr("28 heads")));
  EXPECT_TRUE(plan.longest->lifts.empty());
}

TEST(Limit, OptionsThatContradictEachOtherAreThePlans) {
  const results::PlanResult plan = longest(parse(
      {.training = "{sequence_length: 64Ki, recompute: none, checkpoint_offload: cpu}", .plans = "[{ulysses: 8}]"}));
  EXPECT_EQ(plan.longest->limit, Limit::plan);
  EXPECT_FALSE(plan.longest->tokens);
}

TEST(Limit, AModelThatIsTooLargeTrainsAtNoLength) {
  // 405 billion parameters: 16 B each over 8 GPUs are 755 GiB on each.
  const results::PlanResult plan =
      longest(parse({.model = "llama-3.1-405b", .training = "{sequence_length: 64Ki}", .plans = "[{ulysses: 8}]"}));
  EXPECT_EQ(plan.longest->limit, Limit::gpu_memory);
  EXPECT_FALSE(plan.longest->tokens);
  EXPECT_EQ(plan.longest->next_tokens, 8) << "the shortest legal length";
  ASSERT_TRUE(plan.figures);
  EXPECT_FALSE(plan.fits());
}

TEST(Limit, TheHostStopsWhatIsOffloadedToIt) {
  // Checkpoints of a token: 32 layers · 4,096 · 2 B = 256 KiB on the node's host, whatever the split over its GPUs.
  scenario::Scenario scenario = parse({.training = "{sequence_length: 256Ki, checkpoint_offload: cpu, tiled_mlp: true, "
                                                   "tiled_loss: true, framework: arctic-training}",
                                       .plans = "[{ulysses: 8}]"});
  scenario.cluster.node.host_memory.value = Bytes(std::int64_t{300} << 30);
  scenario.cluster.node.host_memory_reserved.value = Bytes(std::int64_t{44} << 30);
  const results::PlanResult plan = longest(scenario);
  EXPECT_EQ(plan.longest->limit, Limit::host_memory);
  EXPECT_EQ(plan.longest->tokens, 1 << 20) << "256 GiB of checkpoints";
  EXPECT_THAT(plan.longest->reasons, testing::ElementsAre(testing::HasSubstr("host memory")));
}

TEST(Limit, WithoutEndToMemoryTheScenariosOwnBoundStops) {
  scenario::Scenario scenario =
      parse({.model = "qwen3-0.6b", .training = "{sequence_length: 64Ki}", .plans = "[{ulysses: 8}]"});
  scenario.cluster.gpu.memory.value = Bytes(std::int64_t{1} << 60);
  const results::PlanResult plan = longest(scenario);
  EXPECT_EQ(plan.longest->limit, Limit::sequence_bound);
  EXPECT_GE(plan.longest->tokens.value(), 64 << 20);
  EXPECT_EQ(plan.longest->reasons.size(), 1U);
}

TEST(Lift, IsWhatThePlanReachesWithTheOptionWritten) {
  const std::string training = "{sequence_length: 64Ki, framework: arctic-training}";
  for (const std::string plan : {"ulysses: 8", "ring: 8, tiled_loss: true", "tensor: 8, tiled_mlp: true"}) {
    const LongestSequence before = *longest(parse({.training = training, .plans = "[{" + plan + "}]"})).longest;
    ASSERT_GE(before.lifts.size(), 2U) << plan;
    for (std::size_t i = 0; i < before.lifts.size(); ++i) {
      const results::Lift& lift = before.lifts[i];
      EXPECT_GT(lift.max_sequence_length, before.tokens.value_or(0));
      EXPECT_TRUE(i == 0 || before.lifts[i - 1].max_sequence_length >= lift.max_sequence_length) << "best first";
      const std::string changed = "[{" + plan + ", " + lift.option + "}]";
      EXPECT_EQ(longest(parse({.training = training, .plans = changed})).longest->tokens, lift.max_sequence_length)
          << changed;
    }
  }
}

TEST(Warning, NamesThePlansThatPassTheModelsPositions) {
  const results::StudyResult study =
      maxseq(parse({.training = "{sequence_length: 8Ki}", .plans = "[{ulysses: 8, tiled_loss: true}, {data: 8}]"}), {});
  ASSERT_GT(study.plans[0].longest->tokens.value(), 131072);
  ASSERT_LT(study.plans[1].longest->tokens.value(), 131072);
  EXPECT_THAT(
      study.warnings,
      testing::ElementsAre("beyond the 131,072 positions that llama-3.1-8b was made for: ulysses=8,tiled_loss=true"));
}

TEST(Speed, FivePlansOnEightGpusInTwoSeconds) {
  const scenario::Scenario scenario = load_run("llama3-8b-book-8xh100");
  ASSERT_EQ(scenario.plans.size(), 5U);
  const std::clock_t begin = std::clock();
  EXPECT_EQ(maxseq(scenario, {}).plans.size(), 5U);
  expect_cpu_seconds_since(begin, 2.0);
}

}  // namespace
}  // namespace ulysim::study
