#include "hw_models/topology/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace ulysim::topology {
namespace {

/// NICs of a node as far as routes tell them apart: GPUs that share one share its links, and the several NICs of
/// one GPU carry an even split, so they are one link.
std::int64_t distinct_nics(const spec::Node& node) {
  return std::min(node.nics.value, node.gpus);
}

void add_gpus(const NodePlan& at, Plan& plan) {
  const spec::Node& node = at.cluster.node;
  for (std::size_t local = 0; local < static_cast<std::size_t>(at.cluster.gpus_per_node()); ++local) {
    const auto nic = local * static_cast<std::size_t>(distinct_nics(node)) / static_cast<std::size_t>(node.gpus);
    const VertexId vertex =
        plan.add_vertex({.name = fmt::format("gpu {}", local), .kind = VertexKind::gpu, .node = at.node});
    plan.ports.push_back({.vertex = vertex, .node = at.node, .local = local, .nic = nic});
  }
}

void add_host_paths(const NodePlan& at, const Uplinks& uplinks, Plan& plan) {
  const spec::Node& node = at.cluster.node;
  const auto share = static_cast<std::size_t>(node.gpus_per_pcie_uplink.value);
  const auto per_host = static_cast<std::size_t>(at.cluster.gpus_per_host());
  const Bandwidth of_a_host = node.host_memory_bandwidth.value * (1.0 / static_cast<double>(node.hosts.value));
  LinkId memory;
  std::vector<LinkId> to_nvme;
  std::vector<LinkId> from_nvme;
  for (std::size_t rank = at.first_rank; rank < plan.ports.size(); ++rank) {
    const Port& port = plan.ports[rank];
    const std::size_t uplink = port.local / share;
    if (port.local % per_host == 0) {
      const std::string host =
          node.hosts.value == 1 ? at.prefix : fmt::format("{}.host{}", at.prefix, port.local / per_host);
      const VertexId store = plan.add_vertex({.name = "memory", .kind = VertexKind::memory, .node = at.node});
      memory = plan.add_link({.name = host + ".memory",
                              .kind = LinkKind::host_memory,
                              .capacity = of_a_host,
                              .from = uplinks.roots[uplink],
                              .to = store});
      if (node.nvme) {
        // Drives have lanes of their own to the socket: PCIe is not what holds a striped volume back.
        const double share_of_host = 1.0 / static_cast<double>(node.hosts.value);
        const VertexId drives = plan.add_vertex({.name = "drives", .kind = VertexKind::drives, .node = at.node});
        to_nvme = {memory, plan.add_link({.name = host + ".nvme.write",
                                          .kind = LinkKind::nvme,
                                          .capacity = node.nvme->write.value * share_of_host,
                                          .from = store,
                                          .to = drives})};
        from_nvme = {plan.add_link({.name = host + ".nvme.read",
                                    .kind = LinkKind::nvme,
                                    .capacity = node.nvme->read.value * share_of_host,
                                    .from = drives,
                                    .to = store}),
                     memory};
      }
    }
    plan.to_host.push_back({port.pcie_up, uplinks.up[uplink], memory});
    plan.from_host.push_back({memory, uplinks.down[uplink], port.pcie_down});
    plan.host_memory.push_back({memory});
    plan.to_nvme.push_back(to_nvme);
    plan.from_nvme.push_back(from_nvme);
  }
}

/// A NIC sits on the PCIe switch of the first GPU that uses it. Where that is not the GPU's own switch, its traffic
/// crosses the uplinks of both, and the link between the sockets if it must.
void add_nics(const NodePlan& at, const Uplinks& uplinks, Plan& plan, std::vector<Nic>& nics) {
  const spec::Node& node = at.cluster.node;
  const auto share = static_cast<std::size_t>(node.gpus_per_pcie_uplink.value);
  Plan::Pair links;
  std::size_t seat = 0;
  for (std::size_t rank = at.first_rank; rank < plan.ports.size(); ++rank) {
    const Port& port = plan.ports[rank];
    if (rank == at.first_rank || nics.back().index != port.nic) {
      seat = port.local / share;
      links = plan.add_pair({.name = fmt::format("{}.nic{}", at.prefix, port.nic),
                             .kind = LinkKind::nic,
                             .capacity = nic_capacity(at.cluster),
                             .from = uplinks.switches[seat]});
      nics.push_back({.node = at.node, .index = port.nic});
    }
    NicPath path{.rank = rank, .up = {port.pcie_up}, .down = {links.down}};
    const std::vector<LinkId> there = across(node, uplinks, port.local / share, seat);
    const std::vector<LinkId> back = across(node, uplinks, seat, port.local / share);
    path.up.insert(path.up.end(), there.begin(), there.end());
    path.up.push_back(links.up);
    path.down.insert(path.down.end(), back.begin(), back.end());
    path.down.push_back(port.pcie_down);
    nics.back().paths.push_back(std::move(path));
  }
}

}  // namespace

VertexId Plan::add_vertex(Vertex vertex) {
  vertices.push_back(std::move(vertex));
  return VertexId(vertices.size() - 1);
}

LinkId Plan::add_link(Link link) {
  links.push_back(std::move(link));
  return LinkId(links.size() - 1);
}

Plan::Pair Plan::add_pair(const Link& link) {
  Link up = link;
  up.name += ".up";
  Link down = link;
  down.name += ".down";
  std::swap(down.from, down.to);
  const LinkId first = add_link(std::move(up));
  return {.up = first, .down = add_link(std::move(down))};
}

Plan::Pair Plan::join(const Link& link) {
  const Pair pair = add_pair(link);
  hops.push_back({.from = link.from, .to = link.to, .link = pair.up});
  hops.push_back({.from = link.to, .to = link.from, .link = pair.down});
  return pair;
}

Bandwidth nic_capacity(const spec::Cluster& cluster) {
  const spec::Node& node = cluster.node;
  const Bandwidth one = cluster.network.nic_bandwidth.value_or(node.nic_bandwidth.value);
  const std::int64_t bundled = node.nics.value / distinct_nics(node);  // divides: the loader checks it
  return one * static_cast<double>(bundled);
}

std::vector<Nic> add_nodes(const spec::Cluster& cluster, Plan& plan) {
  ULYSIM_CHECK(cluster.nodes > 0 && cluster.gpus > 0 && cluster.gpus % cluster.nodes == 0, "{} GPUs over {} nodes",
               cluster.gpus, cluster.nodes);
  ULYSIM_CHECK(cluster.gpus_per_node() <= cluster.node.gpus, "{} GPUs used of a node of {}", cluster.gpus_per_node(),
               cluster.node.gpus);
  std::vector<Nic> nics;
  for (std::size_t node = 0; node < static_cast<std::size_t>(cluster.nodes); ++node) {
    const NodePlan at{
        .cluster = cluster, .prefix = fmt::format("node{}", node), .node = node, .first_rank = plan.ports.size()};
    add_gpus(at, plan);
    add_nvlink(at, plan);
    const Uplinks uplinks = add_pcie(at, plan);
    add_host_paths(at, uplinks, plan);
    if (cluster.nodes > 1) {
      add_nics(at, uplinks, plan, nics);
    }
  }
  return nics;
}

void connect(const Nic& nic, VertexId switch_vertex, Plan& plan) {
  for (const NicPath& path : nic.paths) {
    plan.links[path.up.back().index()].to = switch_vertex;
    plan.links[path.down.front().index()].from = switch_vertex;
    plan.ports[path.rank].accesses.push_back({.vertex = switch_vertex, .up = path.up, .down = path.down});
  }
}

}  // namespace ulysim::topology
