// Which question this answers: does more work ever cost less, or a faster machine more?

#include <gtest/gtest.h>

#include <random>

#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

constexpr std::uint64_t kSeed = 20240607;
constexpr std::array kPlans{"{ulysses: 8}", "{ring: 8}", "{tensor: 8}", "{ulysses: 4, ring: 2}",
                            "{tensor: 2, data: 4}"};

/// Its own draws: the standard distributions differ between libraries.
std::int64_t below(std::mt19937_64& bits, std::uint64_t n) {
  return static_cast<std::int64_t>(bits() % n);
}

TEST(Monotone, ALongerSequenceNeverTakesLess) {
  std::mt19937_64 bits(kSeed);
  for (int round = 0; round < 12; ++round) {
    const std::string plan = kPlans.at(static_cast<std::size_t>(below(bits, kPlans.size())));
    const std::int64_t tokens = 2048 * (1 + below(bits, 128));
    const std::int64_t more = tokens + 2048 * (1 + below(bits, 64));
    const std::string options = below(bits, 2) == 0 ? "" : ", checkpoint_offload: cpu";
    const auto at = [&](std::int64_t length) {
      return figures_of(
          parse({.training = fmt::format("{{sequence_length: {}{}}}", length, options), .plans = "[" + plan + "]"}));
    };
    const results::Figures shorter = at(tokens);
    const results::Figures longer = at(more);
    const std::string what =
        fmt::format("seed {} round {}: {}{} at {} and {} tokens", kSeed, round, plan, options, tokens, more);
    EXPECT_LE(shorter.step_time, longer.step_time) << what;
    EXPECT_LE(shorter.peak_gpu_allocated, longer.peak_gpu_allocated) << what;
    EXPECT_LE(shorter.peak_host_memory_per_node, longer.peak_host_memory_per_node) << what;
  }
}

TEST(Monotone, AFasterNetworkIsNotSlower) {
  for (const char* plan : {"{ulysses: 16}", "{ring: 16}", "{ulysses: 8, ring: 2}", "{ulysses: 8, data: 2}"}) {
    scenario::Scenario scenario = parse({.cluster = "{node: dgx-h100, nodes: 2}",
                                         .training = "{sequence_length: 64Ki, tiled_loss: true}",
                                         .plans = "[" + std::string(plan) + "]"});
    double before = 0;
    for (const double gigabits : {800.0, 400.0, 200.0, 100.0, 25.0}) {
      scenario.cluster.node.nic_bandwidth.value = Bandwidth(gigabits * 1e9 / 8);
      const double time = seconds(figures_of(scenario).step_time);
      // Shared links and a ring that gets out of step may gain a little from a slower start (Graham 1969).
      EXPECT_GE(time, before * 0.999) << plan << " at " << gigabits << " Gb/s";
      before = std::max(before, time);
    }
  }
}

TEST(Monotone, MoreReplicasTakeAStepOfTheSameTime) {
  // Each replica has its own sequence; what changes is the optimizer's share and what crosses the network.
  const auto on = [](std::int64_t nodes) {
    return figures_of(parse({.cluster = fmt::format("{{node: dgx-h100, nodes: {}}}", nodes),
                             .training = "{sequence_length: 64Ki, tiled_loss: true}",
                             .plans = "[{ulysses: 8}]"}));
  };
  const results::Figures one = on(1);
  const results::Figures four = on(4);
  EXPECT_DOUBLE_EQ(four.tokens_per_step, 4 * one.tokens_per_step);
  EXPECT_LT(time_of(four.breakdown, "optimizer"), time_of(one.breakdown, "optimizer"));
  for (const char* kernels : {"attention", "gemm"}) {
    const double ratio =
        static_cast<double>(time_of(four.breakdown, kernels)) / static_cast<double>(time_of(one.breakdown, kernels));
    EXPECT_NEAR(ratio, 1.0, 0.02) << kernels << ": only interference differs";
  }
  Duration communication{};
  for (const auto& use : four.communication) {
    communication += use.time;
  }
  EXPECT_LE(four.step_time, one.step_time + communication);
  EXPECT_GE(four.step_time.value(), one.step_time.value() * 98 / 100);
}

}  // namespace
}  // namespace ulysim::study
