// Which question this answers: does each fix that is offered beside a failure work when it is pasted into the plan?

#include "sim/study/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

std::vector<std::string> advice_for(const scenario::Scenario& scenario) {
  const Machine machine = build_machine(scenario);
  const results::PlanResult result = simulate(scenario, machine, scenario.plans.front(), {});
  EXPECT_TRUE(result.feasible());
  return advise(scenario, machine, scenario.plans.front(), result);
}

/// "1,048,576 tokens → …" as the key it means; keys stay as they are.
std::string keys_of(const std::string& advice) {
  std::string text = advice.substr(0, advice.find(" → "));
  const std::size_t tokens = text.find(" tokens");
  if (tokens == std::string::npos) {
    return text;
  }
  text.erase(tokens);
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return "sequence_length: " + text;
}

void expect_each_works(Study study, const std::string& plan) {
  study.plans = "[{" + plan + "}]";
  const scenario::Scenario scenario = parse(study);
  const results::Figures before = figures_of(scenario);
  ASSERT_EQ(before.fit(), results::Fit::no) << "the test wants a plan that does not fit";
  const std::vector<std::string> advice = advice_for(scenario);
  ASSERT_FALSE(advice.empty());
  for (const std::string& one : advice) {
    SCOPED_TRACE(one);
    study.plans = "[{" + plan + ", " + keys_of(one) + "}]";
    const results::Figures after = figures_of(parse(study));
    EXPECT_NE(after.fit(), results::Fit::no);
    EXPECT_LT(after.peak_gpu_memory, before.peak_gpu_memory);
    const std::string gib = fmt::format("{:.1f} of", gibibytes(after.peak_gpu_memory));
    EXPECT_THAT(one, testing::HasSubstr(gib)) << "what it said it gives";
  }
}

TEST(Advice, LogitsThatAreTooLargeAreTiled) {
  // 65,536 tokens a GPU: 128,256 · 12 B each are 94 GiB of logits; nothing else is near.
  const Study study{.training = "{sequence_length: 512Ki, tiled_mlp: true, checkpoint_offload: cpu}"};
  expect_each_works(study, "ulysses: 8");
  Study asked = study;
  asked.plans = "[{ulysses: 8}]";
  EXPECT_THAT(advice_for(parse(asked)), testing::Contains(testing::StartsWith("tiled_loss: true")));
}

TEST(Advice, AllTogetherWhereNothingAloneHelps) {
  const Study study{.training = "{sequence_length: 1Mi, recompute: none}"};
  expect_each_works(study, "ulysses: 8");
}

TEST(Advice, HoldsForEveryStrategy) {
  for (const char* plan : {"ring: 8", "tensor: 8", "ulysses: 4, ring: 2"}) {
    SCOPED_TRACE(plan);
    expect_each_works({.training = "{sequence_length: 768Ki}"}, plan);
  }
}

TEST(Advice, StatesThatAreTooLargeAreSharded) {
  // 8 billion parameters of 16 B whole are 120 GiB; an eighth of them is 15.
  const Study study{.training = "{sequence_length: 128Ki, zero: 0, tiled_loss: true}"};
  expect_each_works(study, "ulysses: 8");
  Study asked = study;
  asked.plans = "[{ulysses: 8}]";
  EXPECT_THAT(advice_for(parse(asked)), testing::Contains(testing::StartsWith("zero: 3")));
}

TEST(Advice, APlanThatFitsHasNone) {
  EXPECT_TRUE(
      advice_for(parse({.training = "{sequence_length: 64Ki, tiled_loss: true}", .plans = "[{ulysses: 8}]"})).empty());
}

TEST(Advice, AHopelessPlanGetsNone) {
  // 405 billion parameters: 16 B each over 8 GPUs are 755 GiB, at any length; on the host 18 B are 6.8 TiB.
  const auto advice =
      advice_for(parse({.model = "llama-3.1-405b", .training = "{sequence_length: 64Ki}", .plans = "[{ulysses: 8}]"}));
  EXPECT_TRUE(advice.empty()) << advice.front();
}

}  // namespace
}  // namespace ulysim::study
