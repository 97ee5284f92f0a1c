// Which question this answers: is the main job, four plans of a million tokens on 8 GPUs, done in well under a second,
// and one step of 16,384 GPUs in seconds?

#include <gtest/gtest.h>

#include "sim/study/study.h"
#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

TEST(Speed, AMillionTokensInFourWays) {
  const scenario::Scenario scenario = load_run("llama3-8b-1m-8xh100");
  const std::clock_t begin = std::clock();
  const results::StudyResult study = compare(scenario, {});
  expect_cpu_seconds_since(begin, 0.5);
  EXPECT_EQ(study.plans.size(), 4U);
}

TEST(Speed, SixteenThousandGpus) {
  const scenario::Scenario scenario = load_run("llama3-405b-128k-16384xh100");
  const scenario::PlanEntry& entry = scenario.plans.front();
  ASSERT_TRUE(check(scenario, entry).empty());
  const std::clock_t begin = std::clock();
  const auto stages = run_stages(scenario, build_machine(scenario), entry, Stage::timeline);
  expect_cpu_seconds_since(begin, 10.0);  // unoptimised as tests are
  EXPECT_EQ(stages->schedules.size(), 16U);
  std::size_t members = 0;
  for (const results::RankTimeline& rank : stages->timeline.ranks) {
    members += rank.members.size();
  }
  EXPECT_EQ(members, 16384U);
  EXPECT_LE(stages->timeline.ranks.size(), 256U) << "classes: a stage and a place on the ring of 16 that gathers keys";
}

}  // namespace
}  // namespace ulysim::study
