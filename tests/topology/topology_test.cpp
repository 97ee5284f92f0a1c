// Which links does traffic cross? Routes are written out by hand for a small machine, then held to their laws on
// larger ones.
#include "hw_models/topology/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "sim/base/check.h"

namespace ulysim::topology {
namespace {

using testing::ElementsAre;

template <class T>
spec::Sourced<T> given(T value) {
  return {.value = value, .source = "test"};
}

/// Four GPUs a node, two to an uplink, one NIC each: NVLink 300 GB/s, NIC 25 GB/s, PCIe 20 GB/s.
spec::Cluster small(std::int64_t nodes, const std::string& topology = "rail-optimized") {
  spec::Cluster cluster{.node = {.name = "small",
                                 .gpus = 4,
                                 .nvlink_bandwidth = given(Bandwidth(300e9)),
                                 .nics = given(std::int64_t{4}),
                                 .nic_bandwidth = given(Bandwidth(25e9)),
                                 .pcie_bandwidth = given(Bandwidth(20e9)),
                                 .gpus_per_pcie_uplink = given(std::int64_t{2}),
                                 .pcie_uplink_bandwidth = given(Bandwidth(30e9)),
                                 .host_memory_bandwidth = given(Bandwidth(200e9))},
                        .nodes = nodes,
                        .gpus = 4 * nodes};
  cluster.network.topology = topology;
  return cluster;
}

std::vector<std::string> names(const Topology& topology, std::span<const LinkId> links) {
  std::vector<std::string> out;
  for (const LinkId link : links) {
    out.push_back(topology.links()[link.index()].name);
  }
  return out;
}

std::vector<std::string> route(const Topology& topology, int from, int to) {
  return names(topology, topology.route(RankId(from), RankId(to)));
}

double capacity(const Topology& topology, const std::string& name) {
  for (const Link& link : topology.links()) {
    if (link.name == name) {
      return link.capacity.value();
    }
  }
  ADD_FAILURE() << "no link " << name;
  return 0;
}

TEST(Routes, InsideANodeGoUpToTheSwitchAndDown) {
  const Topology topology = build(small(2));
  EXPECT_THAT(route(topology, 1, 3), ElementsAre("node0.gpu1.nvlink.up", "node0.gpu3.nvlink.down"));
  EXPECT_THAT(route(topology, 6, 4), ElementsAre("node1.gpu2.nvlink.up", "node1.gpu0.nvlink.down"));
}

TEST(Routes, ToItselfCrossNothing) {
  EXPECT_TRUE(build(small(2)).route(RankId(5), RankId(5)).empty());
}

TEST(Routes, OnOneRailNeverMeetTheSpine) {
  EXPECT_THAT(route(build(small(3)), 1, 9),
              ElementsAre("node0.gpu1.pcie.up", "node0.nic1.up", "node2.nic1.down", "node2.gpu1.pcie.down"));
}

TEST(Routes, BetweenRailsUseTheSendersOwnNicAndTheSpine) {
  EXPECT_THAT(route(build(small(2)), 0, 7), ElementsAre("node0.gpu0.pcie.up", "node0.nic0.up", "rail0.up", "rail3.down",
                                                        "node1.nic3.down", "node1.gpu3.pcie.down"));
}

TEST(Routes, OfAFatTreeMeetTheSpineOnlyBetweenLeaves) {
  // 32 ports down / 4 NICs = 8 nodes to a leaf: node 1 shares node 0's leaf, node 8 does not.
  const Topology topology = build(small(9, "fat-tree"));
  EXPECT_THAT(route(topology, 0, 7),
              ElementsAre("node0.gpu0.pcie.up", "node0.nic0.up", "node1.nic3.down", "node1.gpu3.pcie.down"));
  EXPECT_THAT(route(topology, 0, 35), ElementsAre("node0.gpu0.pcie.up", "node0.nic0.up", "leaf0.up", "leaf1.down",
                                                  "node8.nic3.down", "node8.gpu3.pcie.down"));
}

TEST(HostPaths, CrossPcieTheSharedUplinkAndMemory) {
  const Topology topology = build(small(2));
  EXPECT_THAT(names(topology, topology.to_host(RankId(7))),
              ElementsAre("node1.gpu3.pcie.up", "node1.pcie1.up", "node1.memory"));
  EXPECT_THAT(names(topology, topology.from_host(RankId(7))),
              ElementsAre("node1.memory", "node1.pcie1.down", "node1.gpu3.pcie.down"));
  EXPECT_THAT(names(topology, topology.host_memory(RankId(7))), ElementsAre("node1.memory"));
}

TEST(HostPaths, DrivesAreReachedByWayOfTheHostsMemory) {
  spec::Cluster cluster = small(2);
  EXPECT_TRUE(build(cluster).to_nvme(RankId(0)).empty()) << "a node without drives";
  cluster.node.nvme = {.read = given(Bandwidth(48e9)), .write = given(Bandwidth(26e9))};
  const Topology topology = build(cluster);
  EXPECT_THAT(names(topology, topology.to_nvme(RankId(7))), ElementsAre("node1.memory", "node1.nvme.write"));
  EXPECT_THAT(names(topology, topology.from_nvme(RankId(6))), ElementsAre("node1.nvme.read", "node1.memory"));
  EXPECT_EQ(capacity(topology, "node0.nvme.read"), 48e9);
  // Two hosts share the node's drives as they share its memory: GPUs 2 and 3 are the second host's.
  cluster.node.hosts = given(std::int64_t{2});
  const Topology trays = build(cluster);
  EXPECT_THAT(names(trays, trays.to_nvme(RankId(3))), ElementsAre("node0.host1.memory", "node0.host1.nvme.write"));
  EXPECT_EQ(capacity(trays, "node0.host1.nvme.write"), 13e9);
}

TEST(Capacities, AreThoseOfTheNode) {
  spec::Cluster cluster = small(6);
  cluster.network.oversubscription = 2.0;
  const Topology topology = build(cluster);
  EXPECT_EQ(capacity(topology, "node5.gpu0.nvlink.up"), 300e9);
  EXPECT_EQ(capacity(topology, "node5.nic2.down"), 25e9);
  EXPECT_EQ(capacity(topology, "node0.gpu1.pcie.up"), 20e9);
  EXPECT_EQ(capacity(topology, "node0.pcie1.down"), 30e9);
  EXPECT_EQ(capacity(topology, "node3.memory"), 200e9);
  EXPECT_EQ(capacity(topology, "rail3.up"), 75e9) << "6 nodes x 25 GB/s over 2";
}

TEST(Capacities, OfAFatTreeLeafFollowTheNicsOnIt) {
  const Topology topology = build(small(9, "fat-tree"));
  EXPECT_EQ(capacity(topology, "leaf0.up"), 800e9) << "8 nodes x 4 NICs x 25 GB/s";
  EXPECT_EQ(capacity(topology, "leaf1.down"), 100e9) << "one node";
}

TEST(Capacities, TheScenarioOverridesTheNic) {
  spec::Cluster cluster = small(2);
  cluster.network.nic_bandwidth = Bandwidth(50e9);
  EXPECT_EQ(capacity(build(cluster), "node1.nic0.up"), 50e9);
}

TEST(Nics, FewerThanGpusAreShared) {
  spec::Cluster cluster = small(2);
  cluster.node.nics = given(std::int64_t{2});
  const Topology topology = build(cluster);
  // GPUs 0 and 1 share NIC 0, GPUs 2 and 3 NIC 1: GPU 1 to GPU 0 of the other node stays on rail 0.
  EXPECT_THAT(route(topology, 1, 4),
              ElementsAre("node0.gpu1.pcie.up", "node0.nic0.up", "node1.nic0.down", "node1.gpu0.pcie.down"));
  EXPECT_EQ(capacity(topology, "node0.nic0.up"), 25e9);
}

TEST(Nics, MoreThanGpusAddUp) {
  spec::Cluster cluster = small(2);
  cluster.node.nics = given(std::int64_t{16});
  EXPECT_EQ(capacity(build(cluster), "node0.nic3.up"), 100e9) << "four NICs of 25 GB/s to a GPU";
}

TEST(Nics, OfAPartlyUsedNodeKeepTheirGpu) {
  spec::Cluster cluster = small(2);
  cluster.gpus = 4;  // two of each node's four
  const Topology topology = build(cluster);
  EXPECT_EQ(topology.ranks(), 4U);
  EXPECT_THAT(route(topology, 1, 3),
              ElementsAre("node0.gpu1.pcie.up", "node0.nic1.up", "node1.nic1.down", "node1.gpu1.pcie.down"));
}

TEST(Ranks, AreNumberedNodeByNode) {
  const Topology topology = build(small(3));
  EXPECT_EQ(topology.ranks(), 12U);
  EXPECT_EQ(topology.node_of(RankId(6)), 1U);
  EXPECT_EQ(topology.local_index(RankId(6)), 2U);
}

/// The same link seen from the other side: "up" and "down" change places.
std::string mirrored(const std::string& name) {
  if (name.ends_with(".up")) {
    return name.substr(0, name.size() - 2) + "down";
  }
  return name.substr(0, name.size() - 4) + "up";
}

TEST(Laws, TheWayBackIsTheWayThereMirrored) {
  for (const TopologyInfo& info : topologies()) {
    const Topology topology = build(small(10, info.name));
    for (std::size_t from = 0; from < topology.ranks(); ++from) {
      for (std::size_t to = 0; to < topology.ranks(); ++to) {
        std::vector<std::string> there = names(topology, topology.route(RankId(from), RankId(to)));
        const std::vector<std::string> back = names(topology, topology.route(RankId(to), RankId(from)));
        std::reverse(there.begin(), there.end());
        std::transform(there.begin(), there.end(), there.begin(), mirrored);
        ASSERT_EQ(there, back) << info.name << " " << from << " " << to;
      }
    }
  }
}

TEST(Laws, RoutesDoNotDependOnWhatWasAskedBefore) {
  const Topology in_order = build(small(8));
  const Topology at_random = build(small(8));
  std::mt19937 random(20240517);
  std::uniform_int_distribution<std::size_t> rank(0, at_random.ranks() - 1);
  for (int i = 0; i < 500; ++i) {
    const RankId from(rank(random));
    const RankId to(rank(random));
    std::ignore = in_order.route(RankId(i % 32), to);
    ASSERT_TRUE(std::ranges::equal(at_random.route(from, to), in_order.route(from, to)));
  }
}

TEST(Laws, NoLinkIsCrossedTwiceAndNamesAreUnique) {
  const Topology topology = build(small(5));
  std::set<std::string> seen;
  for (const Link& link : topology.links()) {
    EXPECT_TRUE(seen.insert(link.name).second) << link.name;
    EXPECT_GT(link.capacity.value(), 0.0) << link.name;
  }
  for (std::size_t to = 1; to < topology.ranks(); ++to) {
    const auto links = names(topology, topology.route(RankId(0), RankId(to)));
    EXPECT_EQ(std::set<std::string>(links.begin(), links.end()).size(), links.size());
  }
}

TEST(Laws, ACopyKeepsTheSpansAlive) {
  std::span<const LinkId> links;
  Topology copy;
  {
    const Topology topology = build(small(2));
    links = topology.route(RankId(0), RankId(7));
    copy = topology;
  }
  EXPECT_EQ(names(copy, links).front(), "node0.gpu0.pcie.up");
}

TEST(Scale, ARingOverSixteenThousandGpusAndAllTheirInnerGroupsCostOnlyTheirRoutes) {
  // 4096 nodes of 4: each rank to its successor, and to the three others of its node.
  const Topology topology = build(small(4096));
  const std::size_t ranks = topology.ranks();
  ASSERT_EQ(ranks, 16384U);
  std::size_t crossed = 0;
  for (std::size_t from = 0; from < ranks; ++from) {
    crossed += topology.route(RankId(from), RankId((from + 1) % ranks)).size();
    for (std::size_t peer = 1; peer < 4; ++peer) {
      crossed += topology.route(RankId(from), RankId(from / 4 * 4 + (from + peer) % 4)).size();
    }
  }
  // In a node 2 links; between nodes, from rail 3 to rail 0, 6. Ring: 3 in 4 stay inside.
  EXPECT_EQ(crossed, ranks / 4 * (3 * 2 + 6) + ranks * 3 * 2);
}

TEST(Requires, AKnownTopologyAndWholeGpusPerNode) {
  EXPECT_THROW(std::ignore = build(small(2, "moebius-strip")), InternalError);
  spec::Cluster cluster = small(2);
  cluster.gpus = 7;
  EXPECT_THROW(std::ignore = build(cluster), InternalError);
}

/// Where a route begins and ends, and that its links meet in between.
void expect_chain(const Topology& topology, std::span<const LinkId> links, VertexId from, VertexId to) {
  VertexId at = from;
  for (const LinkId id : links) {
    const Link& link = topology.links()[id.index()];
    EXPECT_EQ(link.from, at) << link.name;
    at = link.to;
  }
  EXPECT_EQ(at, to);
}

VertexId vertex(const Topology& topology, std::size_t node, const std::string& name) {
  for (std::size_t i = 0; i < topology.vertices().size(); ++i) {
    if (topology.vertices()[i].node == node && topology.vertices()[i].name == name) {
      return VertexId(i);
    }
  }
  ADD_FAILURE() << "node " << node << " has no " << name;
  return {};
}

TEST(Vertices, TheLinksOfARouteMeetEndToEnd) {
  for (const char* fabric : {"rail-optimized", "fat-tree"}) {
    const Topology topology = build(small(3, fabric));
    const auto gpu = [&](int rank) {
      return vertex(topology, static_cast<std::size_t>(rank) / 4, "gpu " + std::to_string(rank % 4));
    };
    for (int from = 0; from < 12; ++from) {
      for (int to = 0; to < 12; ++to) {
        expect_chain(topology, topology.route(RankId(from), RankId(to)), gpu(from), gpu(to));
      }
      expect_chain(topology, topology.to_host(RankId(from)), gpu(from),
                   vertex(topology, static_cast<std::size_t>(from) / 4, "memory"));
    }
  }
}

TEST(Vertices, OfANodeAreNamedAndThoseBetweenNodesBelongToNone) {
  const Topology topology = build(small(2));
  // 4 GPUs, 2 PCIe switches, NVSwitch, host, memory a node; 4 rails and their spine.
  EXPECT_EQ(topology.vertices().size(), 2U * 9U + 5U);
  int between = 0;
  for (const Vertex& one : topology.vertices()) {
    between += one.node ? 0 : 1;
    EXPECT_EQ(one.kind == VertexKind::network_switch, !one.node) << one.name;
  }
  EXPECT_EQ(between, 5);
}

}  // namespace
}  // namespace ulysim::topology
