// Which question this answers: is the main job, four plans of a million tokens on 8 GPUs, done in well under a second?

#include <gtest/gtest.h>

#include <ctime>

#include "sim/study/study.h"
#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

TEST(Speed, AMillionTokensInFourWays) {
  const scenario::Scenario scenario = load_run("llama3-8b-1m-8xh100");
  const std::clock_t begin = std::clock();  // of this process: a busy machine does not count
  const results::StudyResult study = compare(scenario, {});
  const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_EQ(study.plans.size(), 4U);
  EXPECT_LT(taken, 0.5) << "seconds of CPU time";
}

}  // namespace
}  // namespace ulysim::study
