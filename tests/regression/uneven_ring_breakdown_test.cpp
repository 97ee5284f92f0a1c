// All ranks of a contiguous causal ring end together, at their last collective. The breakdown took rank 0, which has
// 1/15 of the work of rank 7 and waits for it: "exposed communication, 80% of the step".

#include <gtest/gtest.h>

#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

TEST(UnevenRingBreakdown, IsThatOfTheBusiestRank) {
  const results::Figures f =
      figures_of(parse({.training = "{sequence_length: 256Ki, tiled_loss: true, tiled_mlp: true}",
                        .plans = "[{ring: 8, ring_layout: contiguous}]"}));
  EXPECT_GT(time_of(f.breakdown, "attention"), f.step_time.value() * 7 / 10);
  EXPECT_LT(time_of(f.breakdown, "exposed_communication"), f.step_time.value() / 20);
}

}  // namespace
}  // namespace ulysim::study
