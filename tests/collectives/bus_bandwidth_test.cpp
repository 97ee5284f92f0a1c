// Do collectives over an ideal network (no latency, no protocol) reach the bandwidth that arithmetic on the NICs gives,
// and no more? Bus bandwidth = bytes a rank sends / time, as in nccl-tests.
#include <gtest/gtest.h>

#include "sim/network/flow_network.h"
#include "tests/collectives/machine.h"

namespace ulysim::collectives::testing {
namespace {

/// Plays a program unfolded, one flow a transfer.
Instant play(const FlowProgram& program, std::span<const RankId> ranks, const topology::Topology& topology,
             Bytes payload) {
  std::vector<double> capacities;
  for (const topology::Link& link : topology.links()) {
    capacities.push_back(link.capacity.value());
  }
  network::FlowNetwork network(capacities);
  const double chunk = static_cast<double>(payload.value()) / program.divisor;
  std::vector<network::FlowNetwork::Handle> completed;
  for (const Step& step : program.steps) {
    std::vector<std::vector<network::Crossing>> crossings;
    for (const Transfer& transfer : step.transfers) {
      crossings.emplace_back();
      for (const LinkId link : topology.route(ranks[transfer.from], ranks[transfer.to])) {
        crossings.back().push_back({.link = static_cast<std::uint32_t>(link.index()), .flows = 1});
      }
    }
    for (std::uint32_t round = 0; round < step.repeat; ++round) {
      for (std::size_t k = 0; k < crossings.size(); ++k) {
        network.start(crossings[k], chunk * step.transfers[k].chunks);
      }
      while (const auto next = network.next_completion()) {
        network.advance(*next, completed);
      }
    }
  }
  return network.now();
}

double bus_bandwidth(const char* algorithm, Kind kind, std::int64_t nodes, std::int64_t per_node) {
  const auto topology = machine(nodes, per_node);
  const auto ranks = first_ranks(topology.ranks());
  const auto program = find(algorithm)->lower(kind, {.ranks = ranks, .topology = &topology});
  const Bytes payload(std::int64_t{nodes * per_node * per_node} << 20);
  const Instant end = play(program, ranks, topology, payload);
  return static_cast<double>(sent_bytes(kind, payload, nodes * per_node).value()) / seconds(end - Instant{});
}

constexpr double kRounding = 1e-6;  // of whole picoseconds a step

// n−g of a GPU's n−1 equal pieces leave the node through its NIC: time = (n−g)·chunk/NIC, so bus bandwidth
// = (n−1)·chunk/time = NIC·(n−1)/(n−g): 93.75 GB/s for 16 GPUs in nodes of 8, 56.25 for 64, towards 50 at scale.
TEST(BusBandwidth, all_to_all_over_nodes_meets_the_ceiling_of_the_nics) {
  for (const std::int64_t nodes : {2, 3, 4, 8}) {
    const auto n = static_cast<double>(8 * nodes);
    const double ceiling = kNic * (n - 1) / (n - 8);
    EXPECT_NEAR(bus_bandwidth("direct", Kind::all_to_all, nodes, 8) / ceiling, 1.0, kRounding) << nodes << " nodes";
  }
}

// In every step of `pairwise` some GPU's piece leaves its node, alone on its NIC, and the step waits for it: n−1 steps
// of chunk/NIC, so bus bandwidth = NIC, below the ceiling of `direct`.
TEST(BusBandwidth, pairwise_all_to_all_over_nodes_runs_at_one_nic) {
  for (const std::int64_t nodes : {2, 3}) {
    EXPECT_NEAR(bus_bandwidth("pairwise", Kind::all_to_all, nodes, 8) / kNic, 1.0, kRounding) << nodes << " nodes";
  }
}

TEST(BusBandwidth, within_a_node_everything_runs_at_nvlink) {
  EXPECT_NEAR(bus_bandwidth("direct", Kind::all_to_all, 1, 8) / kNvlink, 1.0, kRounding);
  EXPECT_NEAR(bus_bandwidth("pairwise", Kind::all_to_all, 1, 8) / kNvlink, 1.0, kRounding);
  EXPECT_NEAR(bus_bandwidth("ring", Kind::all_gather, 1, 8) / kNvlink, 1.0, kRounding);
  EXPECT_NEAR(bus_bandwidth("ring", Kind::all_reduce, 1, 8) / kNvlink, 1.0, kRounding);
  EXPECT_NEAR(bus_bandwidth("shift", Kind::send_recv, 1, 8) / kNvlink, 1.0, kRounding);
}

// Eight channels on eight rails: a GPU's step is one chunk through its NIC of the eight that it sends, so the bus
// bandwidth is 8 NICs = 400 GB/s; the seven over NVLink take 7/450 < 1/50 and hide.
TEST(BusBandwidth, rings_over_nodes_reach_all_the_nics_of_a_node) {
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce}) {
    for (const std::int64_t nodes : {2, 4}) {
      EXPECT_NEAR(bus_bandwidth("ring", kind, nodes, 8) / (8 * kNic), 1.0, kRounding) << name(kind) << ", " << nodes;
    }
  }
}

TEST(BusBandwidth, one_gpu_a_node_runs_at_its_nic) {
  EXPECT_NEAR(bus_bandwidth("ring", Kind::all_gather, 6, 1) / kNic, 1.0, kRounding);
  EXPECT_NEAR(bus_bandwidth("direct", Kind::all_to_all, 6, 1) / kNic, 1.0, kRounding);
}

}  // namespace
}  // namespace ulysim::collectives::testing
