#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hw_models/spec/cluster.h"
#include "sim/base/ids.h"
#include "sim/base/quantity.h"

namespace ulysim::topology {

enum class LinkKind : std::uint8_t { nvlink, nic, fabric, pcie, host_memory, nvme };
inline constexpr std::size_t kLinkKinds = 6;

enum class VertexKind : std::uint8_t { gpu, nvlink_switch, pcie_switch, host, memory, drives, network_switch };
/// "gpu", "nvlink_switch" …
[[nodiscard]] const char* name(VertexKind kind);

/// What links join. A NIC is no vertex: its link begins at the PCIe switch that it sits on.
struct Vertex {
  std::string name{};  ///< within its node: "gpu 3"
  VertexKind kind{VertexKind::gpu};
  std::optional<std::size_t> node{};  ///< nothing: a switch between nodes
};
using VertexId = Id<struct VertexTag>;

/// One direction of one link (or of several parallel ones that traffic splits over evenly). Host memory has one
/// link for both directions: reads and writes share its channels.
struct Link {
  std::string name{};  ///< "node0.gpu3.nvlink.up"
  LinkKind kind{LinkKind::nvlink};
  Bandwidth capacity{};
  VertexId from{};
  VertexId to{};
};
/// "nvlink", "nic", "fabric", "pcie", "host_memory", "nvme".
[[nodiscard]] const char* name(LinkKind kind);

class Router;
struct Plan;

/// The machine as directed links, and the one route between any two GPUs or a GPU and its host.
/// Equal-cost parallel links are one link of their summed capacity (even split), so routes are unique and the
/// same from run to run. Ranks are numbered node by node: rank = node · gpus_per_node + local index.
///
/// Routes from one GPU to all others are searched when the first of them is asked for, so a large machine of which
/// few ranks are simulated stays small. Spans live as long as the last copy of the topology. Thread safety: all
/// calls may run side by side.
class Topology {
 public:
  [[nodiscard]] std::size_t ranks() const { return node_of_.size(); }
  [[nodiscard]] std::span<const Link> links() const { return links_; }
  [[nodiscard]] std::span<const Vertex> vertices() const { return vertices_; }
  [[nodiscard]] std::size_t node_of(RankId rank) const { return node_of_[rank.index()]; }
  [[nodiscard]] std::size_t local_index(RankId rank) const { return local_of_[rank.index()]; }
  /// Links from GPU `from` to GPU `to`, in order; empty when they are the same.
  /// Inside a node: up to the NVSwitch planes and down. Between nodes: out over PCIe and the GPU's own NIC, through
  /// the fabric, and in again; never through another GPU.
  [[nodiscard]] std::span<const LinkId> route(RankId from, RankId to) const;
  /// From the GPU's memory to its host's, and back: PCIe, shared uplink, host memory.
  [[nodiscard]] std::span<const LinkId> to_host(RankId rank) const { return to_host_[rank.index()]; }
  [[nodiscard]] std::span<const LinkId> from_host(RankId rank) const { return from_host_[rank.index()]; }
  /// The links that host-side work of this rank loads (CPU Adam): the memory of its node.
  [[nodiscard]] std::span<const LinkId> host_memory(RankId rank) const { return host_memory_[rank.index()]; }
  /// From a buffer in the host's memory to its drives, and back; empty where the node has no drives.
  [[nodiscard]] std::span<const LinkId> to_nvme(RankId rank) const { return to_nvme_[rank.index()]; }
  [[nodiscard]] std::span<const LinkId> from_nvme(RankId rank) const { return from_nvme_[rank.index()]; }

 private:
  friend Topology assemble(Plan plan);
  std::vector<Link> links_{};
  std::vector<Vertex> vertices_{};
  std::vector<std::size_t> node_of_{};
  std::vector<std::size_t> local_of_{};
  std::shared_ptr<const Router> router_{};
  std::vector<std::vector<LinkId>> to_host_{};
  std::vector<std::vector<LinkId>> from_host_{};
  std::vector<std::vector<LinkId>> host_memory_{};
  std::vector<std::vector<LinkId>> to_nvme_{};
  std::vector<std::vector<LinkId>> from_nvme_{};
};

/// One way of joining nodes. A family's implementations are listed in catalog.cpp.
struct TopologyInfo {
  std::string name{};
  std::string summary{};
};
[[nodiscard]] std::span<const TopologyInfo> topologies();

/// Builds `cluster.network.topology` over its nodes. Requires a name from `topologies()`, whole GPUs per node.
[[nodiscard]] Topology build(const spec::Cluster& cluster);

}  // namespace ulysim::topology
