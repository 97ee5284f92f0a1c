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

/// The socket's root complex as a vertex, and a pair of links into the interconnect that joins the sockets. Two
/// sockets have one link in each direction, which here is two of the same capacity in a row.
void add_sockets(const NodePlan& at, Uplinks& uplinks, Plan& plan) {
  const spec::Node& node = at.cluster.node;
  const auto sockets = size(node.sockets.value);
  std::vector<Vertex> roots;
  for (std::size_t socket = 0; socket < sockets; ++socket) {
    roots.push_back(plan.add_vertex());
  }
  if (sockets > 1) {
    // Absent: as wide as all that can enter it, which is never the narrowest link of a route.
    const Bandwidth capacity = node.inter_socket_bandwidth
                                   ? node.inter_socket_bandwidth->value
                                   : node.pcie_uplink_bandwidth.value * static_cast<double>(switches_of(node));
    const Vertex between = plan.add_vertex();
    for (std::size_t socket = 0; socket < sockets; ++socket) {
      const auto first = plan.links.size();
      plan.join(roots[socket], between, fmt::format("{}.socket{}", at.prefix, socket), LinkKind::pcie, capacity);
      uplinks.socket_up.emplace_back(first);
      uplinks.socket_down.emplace_back(first + 1);
    }
  }
  for (std::size_t i = 0; i < uplinks.up.size(); ++i) {
    const Vertex pcie_switch = plan.add_vertex();
    uplinks.switches.push_back(pcie_switch);
    plan.hops.push_back({.from = pcie_switch, .to = roots[socket_of(node, i)], .link = uplinks.up[i]});
    plan.hops.push_back({.from = roots[socket_of(node, i)], .to = pcie_switch, .link = uplinks.down[i]});
  }
}

}  // namespace

void add_nvlink(const NodePlan& at, Plan& plan) {
  const spec::Node& node = at.cluster.node;
  if (node.fabric == spec::NodeFabric::pcie) {
    return;
  }
  Vertex joined{};
  for (std::size_t rank = at.first_rank; rank < plan.ports.size(); ++rank) {
    Port& port = plan.ports[rank];
    // A bridge is a switch of two GPUs; the planes of all of them.
    if (port.local == 0 || (node.fabric == spec::NodeFabric::nvlink_pairs && port.local % 2 == 0)) {
      joined = plan.add_vertex();
    }
    const std::string gpu = fmt::format("{}.gpu{}", at.prefix, port.local);
    const Bandwidth rate = node.nvlink_bandwidth.value;
    port.accesses.push_back({.vertex = joined,
                             .up = {plan.add_link(gpu + ".nvlink.up", LinkKind::nvlink, rate)},
                             .down = {plan.add_link(gpu + ".nvlink.down", LinkKind::nvlink, rate)}});
  }
}

Uplinks add_pcie(const NodePlan& at, Plan& plan) {
  const spec::Node& node = at.cluster.node;
  const auto share = size(node.gpus_per_pcie_uplink.value);
  Uplinks uplinks;
  for (std::size_t rank = at.first_rank; rank < plan.ports.size(); ++rank) {
    Port& port = plan.ports[rank];
    if (port.local % share == 0) {
      const std::string uplink = fmt::format("{}.pcie{}", at.prefix, port.local / share);
      uplinks.up.push_back(plan.add_link(uplink + ".up", LinkKind::pcie, node.pcie_uplink_bandwidth.value));
      uplinks.down.push_back(plan.add_link(uplink + ".down", LinkKind::pcie, node.pcie_uplink_bandwidth.value));
    }
    const std::string gpu = fmt::format("{}.gpu{}", at.prefix, port.local);
    port.pcie_up = plan.add_link(gpu + ".pcie.up", LinkKind::pcie, node.pcie_bandwidth.value);
    port.pcie_down = plan.add_link(gpu + ".pcie.down", LinkKind::pcie, node.pcie_bandwidth.value);
  }
  if (node.fabric == spec::NodeFabric::nvswitch) {
    return uplinks;
  }
  add_sockets(at, uplinks, plan);
  for (std::size_t rank = at.first_rank; rank < plan.ports.size(); ++rank) {
    Port& port = plan.ports[rank];
    port.accesses.push_back(
        {.vertex = uplinks.switches[port.local / share], .up = {port.pcie_up}, .down = {port.pcie_down}});
  }
  return uplinks;
}

std::vector<LinkId> across(const spec::Node& node, const Uplinks& uplinks, std::size_t from, std::size_t to) {
  if (from == to || uplinks.switches.empty()) {
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
