#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw_models/spec/cluster.h"
#include "hw_models/topology/topology.h"

namespace ulysim::topology {

/// A hop between two switches, over one link.
struct Hop {
  VertexId from{};
  VertexId to{};
  LinkId link{};
};

/// One way of a GPU to a switch and back. Its links need not be the GPU's alone: GPUs share uplinks and NICs.
struct Access {
  VertexId vertex{};
  std::vector<LinkId> up{};    ///< from the GPU to the switch, in order
  std::vector<LinkId> down{};  ///< from the switch to the GPU
};

/// A GPU as the fabric sees it.
struct Port {
  VertexId vertex{};
  std::size_t node{};
  std::size_t local{};
  std::size_t nic{};  ///< index of its NIC within the node, the first where it has several
  LinkId pcie_up{};
  LinkId pcie_down{};
  /// By preference: NVLink, PCIe, the network. A route takes the first that leads to the other GPU, so traffic
  /// stays inside a node whenever it can, as NCCL's does, and never passes through a third GPU.
  std::vector<Access> accesses{};
};

/// A machine under construction: what a builder fills and `assemble` turns into a Topology.
struct Plan {
  std::vector<Link> links{};
  std::vector<Hop> hops{};
  std::vector<Port> ports{};  ///< by rank
  std::vector<Vertex> vertices{};
  std::vector<std::vector<LinkId>> to_host{};
  std::vector<std::vector<LinkId>> from_host{};
  std::vector<std::vector<LinkId>> host_memory{};
  std::vector<std::vector<LinkId>> to_nvme{};
  std::vector<std::vector<LinkId>> from_nvme{};

  VertexId add_vertex(Vertex vertex);
  LinkId add_link(Link link);
  /// `link` as `name.up`, and `name.down` back.
  struct Pair {
    LinkId up{};
    LinkId down{};
  };
  Pair add_pair(const Link& link);
  /// The same, between two switches that routes may pass.
  Pair join(const Link& link);
};

/// How one GPU gets to its NIC and back, the NIC's own links last and first.
struct NicPath {
  std::size_t rank{};
  std::vector<LinkId> up{};
  std::vector<LinkId> down{};
};

/// A NIC as the fabric sees it: one per NIC of a node, or one per GPU where a GPU has several (their sum).
struct Nic {
  std::size_t node{};
  std::size_t index{};
  std::vector<NicPath> paths{};  ///< of the GPUs that use it
};

/// Adds all nodes (GPUs, NVSwitch planes or PCIe, host memory) and the links of every NIC, which the fabric then
/// connects. NICs come node by node; none when there is one node.
[[nodiscard]] std::vector<Nic> add_nodes(const spec::Cluster& cluster, Plan& plan);

/// Capacity of one Nic above, bytes per second and direction.
[[nodiscard]] Bandwidth nic_capacity(const spec::Cluster& cluster);

/// Hangs a NIC, and with it its GPUs, on a switch.
void connect(const Nic& nic, VertexId switch_vertex, Plan& plan);

[[nodiscard]] Topology assemble(Plan plan);

}  // namespace ulysim::topology
