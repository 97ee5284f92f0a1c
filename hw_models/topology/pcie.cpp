#include <fmt/format.h>

#include "hw_models/topology/node.h"

namespace ulysim::topology {
namespace {

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

/// PCIe switches of the whole node; those of unused GPUs are there too, so that sockets do not depend on use.
std::size_t switches_of(const spec::Node& node) {
  return size(node.gpus / node.gpus_per_pcie_uplink.value);
}

std::size_t socket_of(const spec::Node& node, std::size_t pcie_switch) {
  return pcie_switch * size(node.sockets.value) / switches_of(node);
}

/// Where the uplinks of the PCIe switches lead: a vertex for each socket where GPUs talk over PCIe, else for each host.
std::vector<VertexId> add_roots(const NodePlan& at, Uplinks& uplinks, Plan& plan) {
  const spec::Node& node = at.cluster.node;
  const bool by_socket = node.fabric != spec::NodeFabric::nvswitch;
  const std::size_t count = size(by_socket ? node.sockets.value : node.hosts.value);
  std::vector<VertexId> roots;
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = by_socket ? fmt::format("socket {}", i) : count > 1 ? fmt::format("host {}", i) : "host";
    roots.push_back(plan.add_vertex({.name = std::move(name), .kind = VertexKind::host, .node = at.node}));
  }
  const std::size_t share = size(node.gpus_per_pcie_uplink.value);
  for (std::size_t i = 0; i * share < plan.ports.size() - at.first_rank; ++i) {
    uplinks.roots.push_back(roots[by_socket ? socket_of(node, i) : i * share / size(at.cluster.gpus_per_host())]);
  }
  return roots;
}

/// A pair of links from each socket into the interconnect that joins them. Two sockets have one link in each direction,
/// which here is two of the same capacity in a row.
void join_sockets(const NodePlan& at, const std::vector<VertexId>& sockets, Uplinks& uplinks, Plan& plan) {
  const spec::Node& node = at.cluster.node;
  // Absent: as wide as all that can enter it, which is never the narrowest link of a route.
  const Bandwidth capacity = node.inter_socket_bandwidth
                                 ? node.inter_socket_bandwidth->value
                                 : node.pcie_uplink_bandwidth.value * static_cast<double>(switches_of(node));
  const VertexId between = plan.add_vertex({.name = "between sockets", .kind = VertexKind::host, .node = at.node});
  for (std::size_t socket = 0; socket < sockets.size(); ++socket) {
    const Plan::Pair pair = plan.join({.name = fmt::format("{}.socket{}", at.prefix, socket),
                                       .kind = LinkKind::pcie,
                                       .capacity = capacity,
                                       .from = sockets[socket],
                                       .to = between});
    uplinks.socket_up.push_back(pair.up);
    uplinks.socket_down.push_back(pair.down);
  }
}

}  // namespace

void add_nvlink(const NodePlan& at, Plan& plan) {
  const spec::Node& node = at.cluster.node;
  if (node.fabric == spec::NodeFabric::pcie) {
    return;
  }
  const bool pairs = node.fabric == spec::NodeFabric::nvlink_pairs;
  VertexId joined{};
  for (std::size_t rank = at.first_rank; rank < plan.ports.size(); ++rank) {
    Port& port = plan.ports[rank];
    // A bridge is a switch of two GPUs; the planes of all of them.
    if (port.local == 0 || (pairs && port.local % 2 == 0)) {
      joined = plan.add_vertex({.name = pairs ? fmt::format("bridge {}", port.local / 2) : "NVSwitch",
                                .kind = VertexKind::nvlink_switch,
                                .node = at.node});
    }
    const Plan::Pair pair = plan.add_pair({.name = fmt::format("{}.gpu{}.nvlink", at.prefix, port.local),
                                           .kind = LinkKind::nvlink,
                                           .capacity = node.nvlink_bandwidth.value,
                                           .from = port.vertex,
                                           .to = joined});
    port.accesses.push_back({.vertex = joined, .up = {pair.up}, .down = {pair.down}});
  }
}

Uplinks add_pcie(const NodePlan& at, Plan& plan) {
  const spec::Node& node = at.cluster.node;
  const auto share = size(node.gpus_per_pcie_uplink.value);
  const bool routed = node.fabric != spec::NodeFabric::nvswitch;
  Uplinks uplinks;
  const std::vector<VertexId> roots = add_roots(at, uplinks, plan);
  for (std::size_t rank = at.first_rank; rank < plan.ports.size(); ++rank) {
    Port& port = plan.ports[rank];
    const std::size_t i = port.local / share;
    if (port.local % share == 0) {
      const VertexId pcie_switch =
          plan.add_vertex({.name = fmt::format("PCIe {}", i), .kind = VertexKind::pcie_switch, .node = at.node});
      const Link uplink{.name = fmt::format("{}.pcie{}", at.prefix, i),
                        .kind = LinkKind::pcie,
                        .capacity = node.pcie_uplink_bandwidth.value,
                        .from = pcie_switch,
                        .to = uplinks.roots[i]};
      const Plan::Pair pair = routed ? plan.join(uplink) : plan.add_pair(uplink);
      uplinks.switches.push_back(pcie_switch);
      uplinks.up.push_back(pair.up);
      uplinks.down.push_back(pair.down);
    }
    const Plan::Pair pair = plan.add_pair({.name = fmt::format("{}.gpu{}.pcie", at.prefix, port.local),
                                           .kind = LinkKind::pcie,
                                           .capacity = node.pcie_bandwidth.value,
                                           .from = port.vertex,
                                           .to = uplinks.switches[i]});
    port.pcie_up = pair.up;
    port.pcie_down = pair.down;
    if (routed) {
      port.accesses.push_back({.vertex = uplinks.switches[i], .up = {pair.up}, .down = {pair.down}});
    }
  }
  if (routed && roots.size() > 1) {
    join_sockets(at, roots, uplinks, plan);
  }
  return uplinks;
}

std::vector<LinkId> across(const spec::Node& node, const Uplinks& uplinks, std::size_t from, std::size_t to) {
  if (from == to || node.fabric == spec::NodeFabric::nvswitch) {
    return {};
  }
  std::vector<LinkId> links{uplinks.up[from]};
  if (const std::size_t a = socket_of(node, from), b = socket_of(node, to); a != b) {
    links.push_back(uplinks.socket_up[a]);
    links.push_back(uplinks.socket_down[b]);
  }
  links.push_back(uplinks.down[to]);
  return links;
}

}  // namespace ulysim::topology
