// Do flows complete at the picosecond that a pencil gives, whatever the clock does in between?
#include "sim/network/flow_network.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "sim/base/check.h"
#include "tests/network/problems.h"

namespace ulysim::network::testing {
namespace {

using ::testing::ElementsAre;
using Handle = FlowNetwork::Handle;

constexpr double kBytePerPicosecond = 1e12;  // a link of this rate moves b bytes in b picoseconds

const std::vector<Crossing> kLink0{{0, 1}};
const std::vector<Crossing> kLink1{{1, 1}};
const std::vector<Crossing> kBoth{{0, 1}, {1, 1}};

/// Moves to the next completion and returns it with the flows that complete.
std::pair<std::int64_t, std::vector<Handle>> step(FlowNetwork& network) {
  std::vector<Handle> completed;
  const Instant next = network.next_completion().value();
  network.advance(next, completed);
  return {next.value(), completed};
}

TEST(FlowNetwork, is_idle_at_first) {
  FlowNetwork network({1.0});
  EXPECT_EQ(network.next_completion(), std::nullopt);
  std::vector<Handle> completed;
  network.advance(Instant(1'000), completed);
  EXPECT_EQ(network.now(), Instant(1'000));
  EXPECT_TRUE(completed.empty());
}

TEST(FlowNetwork, a_flow_completes_at_t_and_not_at_t_minus_1) {
  FlowNetwork network({50e9});
  network.start(kLink0, 4096);  // 4096 B at 50 GB/s: 81.92 ns
  ASSERT_EQ(network.next_completion(), Instant(81'920));
  std::vector<Handle> completed;
  network.advance(Instant(81'919), completed);
  EXPECT_TRUE(completed.empty());
  EXPECT_EQ(network.active(), 1U);
  network.advance(Instant(81'920), completed);
  EXPECT_THAT(completed, ElementsAre(0));
  EXPECT_EQ(network.active(), 0U);
}

TEST(FlowNetwork, rounds_up_to_whole_picoseconds) {
  FlowNetwork network({3 * kBytePerPicosecond});
  network.start(kLink0, 10);  // 3⅓ ps
  EXPECT_EQ(network.next_completion(), Instant(4));
}

// A of 100 B alone until 40, then A (60 left) and B of 100 B share: A ends at 40 + 60·2 = 160, when B has moved 60.
// B's last 40 go at full rate: 200. The link never idles, so 200 = 200 B / (1 B/ps).
TEST(FlowNetwork, a_late_flow_halves_the_first) {
  FlowNetwork network({kBytePerPicosecond});
  std::vector<Handle> completed;
  const Handle a = network.start(kLink0, 100);
  EXPECT_EQ(network.next_completion(), Instant(100));
  network.advance(Instant(40), completed);
  const Handle b = network.start(kLink0, 100);
  EXPECT_EQ(network.rate(a), kBytePerPicosecond / 2);
  EXPECT_EQ(step(network), std::make_pair(std::int64_t{160}, std::vector<Handle>{a}));
  EXPECT_EQ(network.rate(b), kBytePerPicosecond);
  EXPECT_THAT(network.carried(), ElementsAre(100 + 60));
  EXPECT_EQ(step(network), std::make_pair(std::int64_t{200}, std::vector<Handle>{b}));
  EXPECT_THAT(network.carried(), ElementsAre(200));
  EXPECT_EQ(network.next_completion(), std::nullopt);
}

TEST(FlowNetwork, a_newcomer_elsewhere_changes_nothing) {
  FlowNetwork network({3 * kBytePerPicosecond, kBytePerPicosecond});
  std::vector<Handle> completed;
  network.start(kLink0, 1000);  // 333⅓: 334
  for (int t = 1; t < 300; ++t) {
    network.advance(Instant(t), completed);
    network.start(kLink1, 1e6);
    ASSERT_EQ(network.next_completion(), Instant(334));
  }
}

TEST(FlowNetwork, ties_complete_together_in_order_of_start) {
  FlowNetwork network({kBytePerPicosecond, kBytePerPicosecond});
  std::vector<Handle> completed;
  const Handle first = network.start(kLink0, 10);
  const Handle second = network.start(kLink1, 20);
  const Handle third = network.start(kLink1, 20);
  EXPECT_EQ(step(network).second, std::vector<Handle>{first});
  const Handle fourth = network.start(kLink0, 30);  // 10 … 40, as the two on link 1
  EXPECT_EQ(fourth, first) << "handles of completed flows are used again";
  EXPECT_EQ(step(network), std::make_pair(std::int64_t{40}, std::vector<Handle>{second, third, fourth}));
}

TEST(FlowNetwork, members_of_a_class_load_the_link_together) {
  FlowNetwork network({kBytePerPicosecond});
  const std::vector<Crossing> four{{0, 4}};
  network.start(four, 100);  // each member at a quarter
  EXPECT_EQ(step(network).first, 400);
  EXPECT_THAT(network.carried(), ElementsAre(400));
}

TEST(FlowNetwork, refuses_to_jump_over_a_completion_or_back) {
  FlowNetwork network({kBytePerPicosecond});
  std::vector<Handle> completed;
  network.start(kLink0, 100);
  EXPECT_THROW(network.advance(Instant(101), completed), InternalError);
  network.advance(Instant(50), completed);
  EXPECT_THROW(network.advance(Instant(49), completed), InternalError);
  EXPECT_THROW(network.start(kLink0, 0.0), InternalError);
  EXPECT_THROW(static_cast<void>(network.rate(7)), InternalError);
}

TEST(FlowNetwork, a_transfer_of_years_is_a_range_error) {
  FlowNetwork network({1.0});
  network.start(kLink0, 1e9);
  EXPECT_THROW(static_cast<void>(network.next_completion()), RangeError);
}

/// A random workload: flows that start at random instants, random bytes and links. With `stops`, the clock also
/// stops at random instants in between. Returns the completions by order of start.
struct Outcome {
  std::map<std::uint32_t, std::int64_t> finish{};
  std::vector<double> carried{};
  std::vector<double> sent{};
};
enum class Stops { none, many };

Outcome simulate(std::uint32_t seed, Stops stops) {
  std::mt19937 random(seed);
  const Problem problem = random_problem(random, 10, 40);
  std::vector<double> capacities = problem.capacities;
  for (double& capacity : capacities) {
    capacity *= 1e9;
  }
  FlowNetwork network(capacities);
  Outcome outcome{.sent = std::vector<double>(capacities.size(), 0.0)};
  std::mt19937 stop_random(seed + 1);
  std::map<Handle, std::uint32_t> number;
  std::vector<Handle> completed;
  const auto go = [&](std::optional<Instant> until) {
    while (true) {
      const auto next = network.next_completion();
      if (!next && !until) {
        return;
      }
      Instant to = next ? *next : *until;
      if (until && *until < to) {
        to = *until;
      }
      if (stops == Stops::many && to > network.now() && below(stop_random, 2) == 0) {
        to = network.now() + Duration((to - network.now()).value() / (1 + below(stop_random, 5)));
        static_cast<void>(network.carried());
      }
      completed.clear();
      network.advance(to, completed);
      for (const Handle handle : completed) {
        outcome.finish[number.at(handle)] = network.now().value();
      }
      for (std::size_t link = 0; link < capacities.size(); ++link) {
        const double most = capacities[link] * (static_cast<double>(to.value()) / kPicosecondsPerSecond);
        EXPECT_LE(network.carried()[link], most * (1 + 1e-9) + 1e-3) << "link " << link;
      }
      if (until && network.now() == *until && network.next_completion() != until) {
        return;
      }
    }
  };
  Instant at{};
  for (std::uint32_t i = 0; i < problem.classes.size(); ++i) {
    at = at + Duration(below(random, 2'000));
    go(at);
    const double bytes = 1.0 + below(random, 20'000);
    for (const Crossing& crossing : problem.classes[i]) {
      outcome.sent[crossing.link] += bytes;
    }
    number[network.start(problem.classes[i], bytes)] = i;
  }
  go(std::nullopt);
  EXPECT_EQ(outcome.finish.size(), problem.classes.size());
  outcome.carried.assign(network.carried().begin(), network.carried().end());
  return outcome;
}

TEST(FlowNetworkProperty, bytes_are_conserved) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Outcome outcome = simulate(seed, Stops::none);
    for (std::size_t link = 0; link < outcome.sent.size(); ++link) {
      ASSERT_NEAR(outcome.carried[link], outcome.sent[link], 1e-6);
    }
  }
}

TEST(FlowNetworkProperty, stopping_the_clock_does_not_move_a_completion) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_EQ(simulate(seed, Stops::many).finish, simulate(seed, Stops::none).finish);
  }
}

TEST(FlowNetwork, tells_what_each_link_carries_now) {
  // Links of 30 and 10 GB/s; one flow crosses both, another the first alone, on which two of its members run:
  // max-min gives the first 10 GB/s (the second link), the others 10 each.
  FlowNetwork network({30e9, 10e9});
  const std::vector<Crossing> both{{.link = 0, .flows = 1}, {.link = 1, .flows = 1}};
  const std::vector<Crossing> twice{{.link = 0, .flows = 2}};
  std::vector<double> loads;
  network.loads(loads);
  EXPECT_EQ(loads, (std::vector<double>{0.0, 0.0})) << "idle";
  network.start(both, 1e9);
  network.start(twice, 1e9);
  network.loads(loads);
  EXPECT_EQ(loads, (std::vector<double>{30e9, 10e9}));
}

}  // namespace
}  // namespace ulysim::network::testing
