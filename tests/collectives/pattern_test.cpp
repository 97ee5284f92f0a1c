// Who sends to whom: every pair once in an all-to-all, one circle through everybody in a ring, every NIC alike.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "tests/collectives/machine.h"

namespace ulysim::collectives::testing {
namespace {

TEST(AllToAll, covers_every_pair_once) {
  const auto topology = machine(2, 8);
  for (const char* algorithm : {"direct", "pairwise"}) {
    for (std::size_t n = 2; n <= 16; ++n) {
      const auto ranks = first_ranks(n);
      const auto program = find(algorithm)->lower(Kind::all_to_all, {.ranks = ranks, .topology = &topology});
      std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
      for (const Step& step : program.steps) {
        ASSERT_EQ(step.repeat, 1U);
        for (const Transfer& transfer : step.transfers) {
          ASSERT_TRUE(pairs.emplace(transfer.from, transfer.to).second) << algorithm << ": a pair twice, n = " << n;
        }
      }
      ASSERT_EQ(pairs.size(), n * (n - 1)) << algorithm;
    }
  }
}

TEST(AllToAll, each_pairwise_step_is_a_permutation) {
  const auto topology = machine(1, 8);
  const auto ranks = first_ranks(7);
  const auto program = find("pairwise")->lower(Kind::all_to_all, {.ranks = ranks, .topology = &topology});
  ASSERT_EQ(program.steps.size(), 6U);
  for (const Step& step : program.steps) {
    std::set<std::uint32_t> senders;
    std::set<std::uint32_t> receivers;
    for (const Transfer& transfer : step.transfers) {
      senders.insert(transfer.from);
      receivers.insert(transfer.to);
    }
    EXPECT_EQ(senders.size(), 7U);
    EXPECT_EQ(receivers.size(), 7U);
  }
}

/// Plays a ring all-gather: position p starts with chunk p and passes on what it received last.
std::vector<std::set<std::uint32_t>> play(const FlowProgram& program, std::size_t n) {
  std::vector<std::set<std::uint32_t>> has(n);
  std::vector<std::uint32_t> last(n);
  for (std::uint32_t p = 0; p < n; ++p) {
    has[p] = {p};
    last[p] = p;
  }
  const Step& step = program.steps.at(0);
  for (std::uint32_t round = 0; round < step.repeat; ++round) {
    const auto sent = last;
    for (const Transfer& transfer : step.transfers) {
      last[transfer.to] = sent[transfer.from];
      has[transfer.to].insert(sent[transfer.from]);
    }
  }
  return has;
}

TEST(Ring, passes_every_chunk_to_everybody) {
  const auto one_node = machine(1, 16);
  const auto single_gpu_nodes = machine(16, 1);
  const auto nodes_of_six = machine(3, 6);
  for (const auto* topology : {&one_node, &single_gpu_nodes, &nodes_of_six}) {
    for (std::size_t n = 2; n <= 16; ++n) {
      if (topology == &nodes_of_six && n == 12) {
        continue;  // two full nodes: channels
      }
      const auto ranks = first_ranks(n);
      const auto program = find("ring")->lower(Kind::all_gather, {.ranks = ranks, .topology = topology});
      ASSERT_EQ(program.steps.size(), 1U);
      ASSERT_EQ(program.divisor, n);
      for (const auto& chunks : play(program, n)) {
        ASSERT_EQ(chunks.size(), n);
      }
    }
  }
}

TEST(Ring, all_reduce_takes_twice_the_steps) {
  const auto topology = machine(1, 8);
  const auto ranks = first_ranks(8);
  const Group group{.ranks = ranks, .topology = &topology};
  EXPECT_EQ(find("ring")->lower(Kind::all_gather, group).steps.at(0).repeat, 7U);
  EXPECT_EQ(find("ring")->lower(Kind::reduce_scatter, group).steps.at(0).repeat, 7U);
  EXPECT_EQ(find("ring")->lower(Kind::all_reduce, group).steps.at(0).repeat, 14U);
}

// Whatever the order of the group, a ring leaves each node once: 3 nodes, 3 hops.
TEST(Ring, leaves_each_node_once_when_nodes_are_unequal) {
  const auto topology = machine(3, 4);
  std::vector<RankId> ranks;
  for (const int rank : {0, 4, 8, 1, 5, 9, 2}) {
    ranks.emplace_back(rank);
  }
  const auto program = find("ring")->lower(Kind::all_gather, {.ranks = ranks, .topology = &topology});
  int hops = 0;
  for (const Transfer& transfer : program.steps.at(0).transfers) {
    hops += topology.node_of(ranks[transfer.from]) != topology.node_of(ranks[transfer.to]) ? 1 : 0;
  }
  EXPECT_EQ(hops, 3);
  for (const auto& chunks : play(program, ranks.size())) {
    EXPECT_EQ(chunks.size(), ranks.size());
  }
}

// Chunks a step on every link of a kind.
std::map<std::uint64_t, int> histogram(const Step& step, std::span<const RankId> ranks,
                                       const topology::Topology& topology, topology::LinkKind kind) {
  std::vector<std::uint64_t> chunks(topology.links().size(), 0);
  for (const Transfer& transfer : step.transfers) {
    for (const LinkId link : topology.route(ranks[transfer.from], ranks[transfer.to])) {
      chunks[link.index()] += transfer.chunks;
    }
  }
  std::map<std::uint64_t, int> links_by_chunks;
  for (std::size_t link = 0; link < chunks.size(); ++link) {
    if (topology.links()[link].kind == kind) {
      ++links_by_chunks[chunks[link]];
    }
  }
  return links_by_chunks;
}

// 4 nodes of 8: every GPU sends 7 chunks to its neighbour and one to its rail's next node; each of the 4·8·2 directed
// NICs carries one.
TEST(Ring, over_nodes_uses_every_nic_alike_and_stays_on_its_rail) {
  const auto topology = machine(4, 8);
  std::vector<RankId> round_robin;
  for (int local = 0; local < 8; ++local) {
    for (int node = 0; node < 4; ++node) {
      round_robin.emplace_back(8 * node + local);
    }
  }
  const auto in_order = first_ranks(32);
  for (const auto& ranks : {in_order, round_robin}) {
    const auto program = find("ring")->lower(Kind::all_gather, {.ranks = ranks, .topology = &topology});
    EXPECT_EQ(program.divisor, 32U * 8U);
    EXPECT_EQ(program.steps.at(0).repeat, 31U);
    for (const Transfer& transfer : program.steps.at(0).transfers) {
      const RankId from = ranks[transfer.from];
      const RankId to = ranks[transfer.to];
      if (topology.node_of(from) == topology.node_of(to)) {
        EXPECT_EQ(transfer.chunks, 7U);
        EXPECT_EQ(topology.local_index(to), (topology.local_index(from) + 1) % 8);
      } else {
        EXPECT_EQ(transfer.chunks, 1U);
        EXPECT_EQ(topology.local_index(to), topology.local_index(from)) << "off its rail";
        EXPECT_EQ(topology.node_of(to), (topology.node_of(from) + 1) % 4);
      }
    }
    EXPECT_THAT(histogram(program.steps.at(0), ranks, topology, topology::LinkKind::nic),
                ::testing::ElementsAre(::testing::Pair(1U, 64)));
  }
}

}  // namespace
}  // namespace ulysim::collectives::testing
