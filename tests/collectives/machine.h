#pragma once

#include <cstdint>
#include <vector>

#include "hw_models/topology/topology.h"
#include "sim/collectives/algorithm.h"

namespace ulysim::collectives::testing {

inline constexpr double kNvlink = 450e9;  // bytes per second and direction of one GPU
inline constexpr double kNic = 50e9;      // 400 Gb/s, one a GPU

/// Nodes of NVSwitched GPUs with one NIC each, rail-optimized and non-blocking.
[[nodiscard]] inline topology::Topology machine(std::int64_t nodes, std::int64_t per_node) {
  spec::Cluster cluster;
  cluster.nodes = nodes;
  cluster.gpus = nodes * per_node;
  cluster.node.name = "test";
  cluster.node.gpus = per_node;
  cluster.node.nvlink_bandwidth.value = Bandwidth(kNvlink);
  cluster.node.nics.value = per_node;
  cluster.node.nic_bandwidth.value = Bandwidth(kNic);
  cluster.node.pcie_bandwidth.value = Bandwidth(50e9);
  cluster.node.gpus_per_pcie_uplink.value = 1;
  cluster.node.pcie_uplink_bandwidth.value = Bandwidth(50e9);
  cluster.node.pageable_copy_efficiency.value = 0.5;
  cluster.node.sockets.value = 1;
  cluster.node.host_memory_bandwidth.value = Bandwidth(400e9);
  cluster.node.host_memory.value = Bytes(std::int64_t{1} << 40);
  return topology::build(cluster);
}

[[nodiscard]] inline std::vector<RankId> first_ranks(std::size_t n) {
  std::vector<RankId> ranks;
  for (std::size_t rank = 0; rank < n; ++rank) {
    ranks.emplace_back(rank);
  }
  return ranks;
}

/// Chunks that each position sends and receives over the whole program.
struct Volume {
  std::vector<std::uint64_t> sent{};
  std::vector<std::uint64_t> received{};
};

[[nodiscard]] inline Volume volume(const FlowProgram& program, std::size_t n) {
  Volume total{.sent = std::vector<std::uint64_t>(n, 0), .received = std::vector<std::uint64_t>(n, 0)};
  for (const Step& step : program.steps) {
    for (const Transfer& transfer : step.transfers) {
      total.sent.at(transfer.from) += std::uint64_t{transfer.chunks} * step.repeat;
      total.received.at(transfer.to) += std::uint64_t{transfer.chunks} * step.repeat;
    }
  }
  return total;
}

}  // namespace ulysim::collectives::testing
