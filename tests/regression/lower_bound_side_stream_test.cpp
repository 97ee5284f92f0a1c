// The lower bound added up every kernel of the graph. Gradient casts and sums run on the reduction's stream, beside
// backward: with them it exceeded the step.

#include <gtest/gtest.h>

#include "sim/study/simulate.h"
#include "tests/engine/small_machine.h"

namespace ulysim::study {
namespace {

TEST(LowerBoundSideStream, KernelsBesideTheComputeStreamBoundNothing) {
  engine::GraphMaker maker;
  maker.kernel("cast", 700, workload::Stream::zero_reduce);
  maker.kernel("gemm", 1000);
  const results::Timeline timeline = engine::play(maker.graph, engine::small_cluster(1, 1));
  EXPECT_EQ(timeline.end.value(), 1'000'000) << "side by side: the longer one";
  EXPECT_EQ(estimate(maker.graph, engine::OneNanosecondPerUnit()).value(), 1'000'000) << "not 1700 ns";
}

}  // namespace
}  // namespace ulysim::study
