// Servers whose GPUs no NVSwitch joins: which PCIe switches, sockets and bridges does traffic cross? And servers that
// are several hosts in one NVLink domain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw_models/topology/topology.h"

namespace ulysim::topology {
namespace {

using testing::ElementsAre;

template <class T>
spec::Sourced<T> given(T value) {
  return {.value = value, .source = "test"};
}

/// Eight GPUs, two to a PCIe switch, two switches to a socket, a NIC for each socket (GPUs 0 and 4 sit beside it).
spec::Cluster box(std::int64_t nodes, spec::NodeFabric fabric = spec::NodeFabric::pcie) {
  return {.node = {.name = "box",
                   .gpus = 8,
                   .fabric = fabric,
                   .nvlink_bandwidth = given(Bandwidth(200e9)),
                   .nics = given(std::int64_t{2}),
                   .nic_bandwidth = given(Bandwidth(25e9)),
                   .pcie_bandwidth = given(Bandwidth(20e9)),
                   .gpus_per_pcie_uplink = given(std::int64_t{2}),
                   .pcie_uplink_bandwidth = given(Bandwidth(22e9)),
                   .sockets = given(std::int64_t{2}),
                   .inter_socket_bandwidth = given(Bandwidth(30e9)),
                   .host_memory_bandwidth = given(Bandwidth(200e9))},
          .nodes = nodes,
          .gpus = 8 * nodes};
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

const Link& link(const Topology& topology, const std::string& name) {
  for (const Link& one : topology.links()) {
    if (one.name == name) {
      return one;
    }
  }
  ADD_FAILURE() << "no link " << name;
  return topology.links().front();
}

TEST(Pcie, NeighboursMeetInTheirSwitch) {
  EXPECT_THAT(route(build(box(1)), 2, 3), ElementsAre("node0.gpu2.pcie.up", "node0.gpu3.pcie.down"));
}

TEST(Pcie, SwitchesOfASocketMeetInItsRootComplex) {
  EXPECT_THAT(route(build(box(1)), 1, 2),
              ElementsAre("node0.gpu1.pcie.up", "node0.pcie0.up", "node0.pcie1.down", "node0.gpu2.pcie.down"));
}

TEST(Pcie, SocketsMeetOverTheLinkBetweenThem) {
  const Topology topology = build(box(1));
  EXPECT_THAT(route(topology, 0, 7), ElementsAre("node0.gpu0.pcie.up", "node0.pcie0.up", "node0.socket0.up",
                                                 "node0.socket1.down", "node0.pcie3.down", "node0.gpu7.pcie.down"));
  EXPECT_EQ(link(topology, "node0.socket1.down").capacity.value(), 30e9);
  EXPECT_EQ(link(topology, "node0.socket1.down").kind, LinkKind::pcie);
}

TEST(Pcie, HostPathsAreThoseOfEveryNode) {
  const Topology topology = build(box(1));
  EXPECT_THAT(names(topology, topology.to_host(RankId(7))),
              ElementsAre("node0.gpu7.pcie.up", "node0.pcie3.up", "node0.memory"));
}

TEST(Pcie, WithoutANumberTheLinkBetweenSocketsIsNeverTheNarrowest) {
  spec::Cluster cluster = box(1);
  cluster.node.inter_socket_bandwidth.reset();
  EXPECT_EQ(link(build(cluster), "node0.socket0.up").capacity.value(), 88e9) << "four uplinks of 22 GB/s";
}

TEST(Pcie, OneSocketHasNoSuchLink) {
  spec::Cluster cluster = box(1);
  cluster.node.sockets = given(std::int64_t{1});
  EXPECT_THAT(route(build(cluster), 0, 7),
              ElementsAre("node0.gpu0.pcie.up", "node0.pcie0.up", "node0.pcie3.down", "node0.gpu7.pcie.down"));
}

TEST(Pcie, ANicIsReachedOverTheUplinksUnlessItSitsOnTheGpusSwitch) {
  const Topology topology = build(box(2));
  // GPUs 0 to 3 share NIC 0, which sits beside GPUs 0 and 1.
  EXPECT_THAT(route(topology, 1, 8),
              ElementsAre("node0.gpu1.pcie.up", "node0.nic0.up", "node1.nic0.down", "node1.gpu0.pcie.down"));
  EXPECT_THAT(route(topology, 2, 11),
              ElementsAre("node0.gpu2.pcie.up", "node0.pcie1.up", "node0.pcie0.down", "node0.nic0.up",
                          "node1.nic0.down", "node1.pcie0.up", "node1.pcie1.down", "node1.gpu3.pcie.down"));
}

TEST(Pcie, ASingleNicIsReachedOverTheLinkBetweenSockets) {
  spec::Cluster cluster = box(2);
  cluster.node.nics = given(std::int64_t{1});
  EXPECT_THAT(route(build(cluster), 7, 8),
              ElementsAre("node0.gpu7.pcie.up", "node0.pcie3.up", "node0.socket1.up", "node0.socket0.down",
                          "node0.pcie0.down", "node0.nic0.up", "node1.nic0.down", "node1.gpu0.pcie.down"));
}

TEST(Pcie, TrafficInsideANodeNeverLeavesItWhereTheNetworkWouldBeShorter) {
  // Across sockets six links; over the NICs and one leaf four.
  spec::Cluster cluster = box(2);
  cluster.node.nics = given(std::int64_t{8});
  cluster.network.topology = "fat-tree";
  EXPECT_EQ(route(build(cluster), 0, 7).size(), 6U);
}

TEST(Pairs, BridgesJoinEvenToOddAndPcieTheRest) {
  const Topology topology = build(box(2, spec::NodeFabric::nvlink_pairs));
  EXPECT_THAT(route(topology, 6, 7), ElementsAre("node0.gpu6.nvlink.up", "node0.gpu7.nvlink.down"));
  EXPECT_THAT(route(topology, 5, 4), ElementsAre("node0.gpu5.nvlink.up", "node0.gpu4.nvlink.down"));
  EXPECT_THAT(route(topology, 5, 6),
              ElementsAre("node0.gpu5.pcie.up", "node0.pcie2.up", "node0.pcie3.down", "node0.gpu6.pcie.down"));
  EXPECT_EQ(route(topology, 1, 8).front(), "node0.gpu1.pcie.up");
  EXPECT_EQ(link(topology, "node0.gpu6.nvlink.up").capacity.value(), 200e9);
}

TEST(Pairs, OfAPartlyUsedNodeLeaveOneAlone) {
  spec::Cluster cluster = box(1, spec::NodeFabric::nvlink_pairs);
  cluster.gpus = 3;
  EXPECT_THAT(route(build(cluster), 1, 2),
              ElementsAre("node0.gpu1.pcie.up", "node0.pcie0.up", "node0.pcie1.down", "node0.gpu2.pcie.down"));
}

TEST(Hosts, ShareOneNvlinkDomainAndHaveMemoriesOfTheirOwn) {
  spec::Cluster cluster = box(1, spec::NodeFabric::nvswitch);
  cluster.node.hosts = given(std::int64_t{4});
  const Topology topology = build(cluster);
  EXPECT_THAT(route(topology, 0, 7), ElementsAre("node0.gpu0.nvlink.up", "node0.gpu7.nvlink.down"));
  EXPECT_THAT(names(topology, topology.host_memory(RankId(5))), ElementsAre("node0.host2.memory"));
  EXPECT_EQ(topology.to_host(RankId(4)).back(), topology.to_host(RankId(5)).back());
  EXPECT_EQ(link(topology, "node0.host3.memory").capacity.value(), 50e9) << "a quarter of the node's 200 GB/s";
}

TEST(Hosts, OnlyThoseWithAGpuInUseLendTheirMemory) {
  spec::Cluster cluster = box(1, spec::NodeFabric::nvswitch);
  cluster.node.hosts = given(std::int64_t{4});
  cluster.node.host_memory = given(Bytes(1200));
  cluster.node.host_memory_reserved = given(Bytes(200));
  EXPECT_EQ(cluster.usable_host_memory_per_node(), Bytes(1000));
  cluster.gpus = 3;  // two hosts of two GPUs
  EXPECT_EQ(cluster.usable_host_memory_per_node(), Bytes(500));
}

}  // namespace
}  // namespace ulysim::topology
