#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw_models/spec/cluster.h"
#include "hw_models/topology/topology.h"

namespace ulysim::topology {

using Vertex = std::uint32_t;

/// A hop that crosses one link. Several hops may share a link (GPUs behind one uplink or one NIC).
struct Hop {
  Vertex from{};
  Vertex to{};
  LinkId link{};
};

/// A GPU as the graph sees it. Traffic leaves at `out` and ends at `in`, two vertices, so that no route passes
/// through a GPU; `port_*` stand between its PCIe link and what is behind it: its NIC and the host.
struct Port {
  Vertex out{};
  Vertex in{};
  Vertex port_out{};
  Vertex port_in{};
  std::size_t node{};
  std::size_t local{};
  std::size_t nic{};  ///< index of its NIC within the node, the first where it has several
};

/// A machine under construction: what a builder fills and `assemble` turns into a Topology.
struct Plan {
  std::vector<Link> links{};
  std::vector<Hop> hops{};
  std::vector<Port> ports{};  ///< by rank
  Vertex vertices{};
  std::vector<std::vector<LinkId>> to_host{};
  std::vector<std::vector<LinkId>> from_host{};
  std::vector<std::vector<LinkId>> host_memory{};

  Vertex add_vertex() { return vertices++; }
  LinkId add_link(std::string name, LinkKind kind, Bandwidth capacity);
};

/// A NIC as the fabric sees it: one per NIC of a node, or one per GPU where a GPU has several (their sum).
struct Nic {
  std::size_t node{};
  std::size_t index{};
  LinkId up{};
  LinkId down{};
  std::vector<std::size_t> ranks{};  ///< GPUs that use it
};

/// Adds all nodes (GPUs, NVSwitch planes, PCIe, host memory) and the two links of every NIC, which the fabric
/// then connects. NICs come node by node; none when there is one node.
[[nodiscard]] std::vector<Nic> add_nodes(const spec::Cluster& cluster, Plan& plan);

/// Capacity of one Nic above, bytes per second and direction.
[[nodiscard]] Bandwidth nic_capacity(const spec::Cluster& cluster);

/// Hops between a NIC and the switch that it hangs on.
void connect(const Nic& nic, Vertex switch_vertex, Plan& plan);

[[nodiscard]] Topology assemble(Plan plan);

}  // namespace ulysim::topology
