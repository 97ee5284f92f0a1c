// Does every algorithm of the catalogue move the volume that the bus-bandwidth factors say? A new algorithm is tested
// here by being listed.
#include <gmock/gmock.h>

#include <array>
#include <utility>

#include "sim/base/check.h"
#include "tests/collectives/machine.h"

namespace ulysim::collectives::testing {
namespace {

constexpr std::array kKinds{Kind::all_to_all, Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce,
                            Kind::send_recv};

// nccl-tests, doc/PERFORMANCE.md: a rank sends 2(n−1)/n of the payload in an all-reduce, (n−1)/n in an all-gather,
// reduce-scatter and all-to-all, all of it in a send/recv. Written as (numerator, denominator).
std::pair<std::int64_t, std::int64_t> factor(Kind kind, std::int64_t n) {
  switch (kind) {
    case Kind::all_reduce:
      return {2 * (n - 1), n};
    case Kind::send_recv:
      return {1, 1};
    default:
      return {n - 1, n};
  }
}

void expect_volume(const Algorithm& algorithm, Kind kind, const Group& group) {
  const std::size_t n = group.ranks.size();
  SCOPED_TRACE(fmt::format("{} {} over {}", algorithm.name(), name(kind), n));
  const FlowProgram program = algorithm.lower(kind, group);
  const std::int64_t chunk = 48;
  const std::int64_t payload = chunk * program.divisor;
  const auto [numerator, denominator] = factor(kind, static_cast<std::int64_t>(n));
  ASSERT_EQ(payload * numerator % denominator, 0);
  const auto expected = static_cast<std::uint64_t>(payload * numerator / denominator / chunk);
  const Volume total = volume(program, n);
  EXPECT_THAT(total.sent, ::testing::Each(expected));
  EXPECT_THAT(total.received, ::testing::Each(expected));
  for (const Step& step : program.steps) {
    for (const Transfer& transfer : step.transfers) {
      EXPECT_NE(transfer.from, transfer.to);
      EXPECT_GT(transfer.chunks, 0U);
    }
    EXPECT_GT(step.repeat, 0U);
  }
}

class EveryAlgorithm : public ::testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithm, moves_the_volume_of_its_factor_within_a_node) {
  const auto topology = machine(1, 16);
  for (const Kind kind : kKinds) {
    for (std::size_t n = 2; n <= 16; ++n) {
      const auto ranks = first_ranks(n);
      const Group group{.ranks = ranks, .topology = &topology};
      if (GetParam()->supports(kind, group)) {
        expect_volume(*GetParam(), kind, group);
      }
    }
  }
}

TEST_P(EveryAlgorithm, moves_the_volume_of_its_factor_over_nodes) {
  for (const auto& [nodes, per_node] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 8}, {5, 2}, {3, 4}, {7, 1}}) {
    const auto topology = machine(nodes, per_node);
    // All ranks; all but the last (unequal nodes); the first GPU of every node; every rank, round robin over nodes.
    const auto all = first_ranks(topology.ranks());
    const auto unequal = first_ranks(topology.ranks() - 1);
    std::vector<RankId> column;
    std::vector<RankId> round_robin;
    for (std::int64_t local = 0; local < per_node; ++local) {
      for (std::int64_t node = 0; node < nodes; ++node) {
        round_robin.emplace_back(static_cast<std::size_t>(node * per_node + local));
      }
    }
    for (std::int64_t node = 0; node < nodes; ++node) {
      column.emplace_back(static_cast<std::size_t>(node * per_node));
    }
    for (const auto& ranks : {all, unequal, column, round_robin}) {
      const Group group{.ranks = ranks, .topology = &topology};
      for (const Kind kind : kKinds) {
        if (GetParam()->supports(kind, group)) {
          expect_volume(*GetParam(), kind, group);
        }
      }
    }
  }
}

TEST_P(EveryAlgorithm, does_something_and_a_group_of_one_does_nothing) {
  const auto topology = machine(1, 8);
  const auto ranks = first_ranks(8);
  const Group one{.ranks = std::span(ranks).first(1), .topology = &topology};
  const Group eight{.ranks = ranks, .topology = &topology};
  std::size_t supported = 0;
  for (const Kind kind : kKinds) {
    if (GetParam()->supports(kind, eight)) {
      ++supported;
      EXPECT_TRUE(GetParam()->lower(kind, one).steps.empty());
      EXPECT_FALSE(GetParam()->lower(kind, eight).steps.empty());
    } else {
      EXPECT_THROW(static_cast<void>(GetParam()->lower(kind, eight)), InternalError);
    }
  }
  EXPECT_GT(supported, 0U);
}

TEST_P(EveryAlgorithm, is_found_by_its_name) {
  EXPECT_EQ(find(GetParam()->name()), GetParam());
  EXPECT_FALSE(GetParam()->summary().empty());
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryAlgorithm, ::testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& tested) { return tested.param->name(); });

TEST(Catalogue, chooses_direct_for_all_to_all_and_rings_for_the_rest) {
  const auto topology = machine(1, 8);
  const auto ranks = first_ranks(8);
  const Group group{.ranks = ranks, .topology = &topology};
  EXPECT_EQ(choose(Kind::all_to_all, group).name(), "direct");
  EXPECT_EQ(choose(Kind::all_gather, group).name(), "ring");
  EXPECT_EQ(choose(Kind::reduce_scatter, group).name(), "ring");
  EXPECT_EQ(choose(Kind::all_reduce, group).name(), "ring");
  EXPECT_EQ(choose(Kind::send_recv, group).name(), "shift");
  EXPECT_EQ(find("rings"), nullptr);
}

TEST(SentBytes, follows_the_factors_rounded_down) {
  EXPECT_EQ(sent_bytes(Kind::all_to_all, Bytes(800), 8), Bytes(700));
  EXPECT_EQ(sent_bytes(Kind::all_gather, Bytes(800), 8), Bytes(700));
  EXPECT_EQ(sent_bytes(Kind::reduce_scatter, Bytes(10), 4), Bytes(7));  // 7.5
  EXPECT_EQ(sent_bytes(Kind::all_reduce, Bytes(800), 8), Bytes(1400));
  EXPECT_EQ(sent_bytes(Kind::all_reduce, Bytes(10), 3), Bytes(13));  // 13⅓
  EXPECT_EQ(sent_bytes(Kind::send_recv, Bytes(10), 3), Bytes(10));
}

TEST(SentBytes, a_group_of_one_sends_nothing) {
  for (const Kind kind : kKinds) {
    EXPECT_EQ(sent_bytes(kind, Bytes(10), 1), Bytes(0)) << name(kind);
  }
}

// 2^62 · 16383/16384 = 2^62 − 2^48, though the product leaves int64.
TEST(SentBytes, does_not_overflow) {
  EXPECT_EQ(sent_bytes(Kind::all_gather, Bytes(std::int64_t{1} << 62), 16384),
            Bytes((std::int64_t{1} << 62) - (std::int64_t{1} << 48)));
}

TEST(SentBytes, refuses_negative_payloads_and_empty_groups) {
  EXPECT_THROW(static_cast<void>(sent_bytes(Kind::all_gather, Bytes(-1), 2)), InternalError);
  EXPECT_THROW(static_cast<void>(sent_bytes(Kind::all_gather, Bytes(1), 0)), InternalError);
}

}  // namespace
}  // namespace ulysim::collectives::testing
