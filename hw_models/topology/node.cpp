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
    plan.ports.push_back({.node = at.node, .local = local, .nic = nic});
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
    if (port.local % per_host == 0) {
      const std::string host =
          node.hosts.value == 1 ? at.prefix : fmt::format("{}.host{}", at.prefix, port.local / per_host);
      memory = plan.add_link(host + ".memory", LinkKind::host_memory, of_a_host);
      if (node.nvme) {
        // Drives have lanes of their own to the socket: PCIe is not what holds a striped volume back.
        const double share_of_host = 1.0 / static_cast<double>(node.hosts.value);
        to_nvme = {memory, plan.add_link(host + ".nvme.write", LinkKind::nvme, node.nvme->write.value * share_of_host)};
        from_nvme = {plan.add_link(host + ".nvme.read", LinkKind::nvme, node.nvme->read.value * share_of_host), memory};
      }
    }
    const std::size_t uplink = port.local / share;
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
  LinkId nic_up;
  LinkId nic_down;
  std::size_t seat = 0;
  for (std::size_t rank = at.first_rank; rank < plan.ports.size(); ++rank) {
    const Port& port = plan.ports[rank];
    if (rank == at.first_rank || nics.back().index != port.nic) {
      const std::string name = fmt::format("{}.nic{}", at.prefix, port.nic);
      nic_up = plan.add_link(name + ".up", LinkKind::nic, nic_capacity(at.cluster));
      nic_down = plan.add_link(name + ".down", LinkKind::nic, nic_capacity(at.cluster));
      seat = port.local / share;
      nics.push_back({.node = at.node, .index = port.nic});
    }
    NicPath path{.rank = rank, .up = {port.pcie_up}, .down = {nic_down}};
    const std::vector<LinkId> there = across(node, uplinks, port.local / share, seat);
    const std::vector<LinkId> back = across(node, uplinks, seat, port.local / share);
    path.up.insert(path.up.end(), there.begin(), there.end());
    path.up.push_back(nic_up);
    path.down.insert(path.down.end(), back.begin(), back.end());
    path.down.push_back(port.pcie_down);
    nics.back().paths.push_back(std::move(path));
  }
}

}  // namespace

LinkId Plan::add_link(std::string name, LinkKind kind, Bandwidth capacity) {
  links.push_back({.name = std::move(name), .kind = kind, .capacity = capacity});
  return LinkId(links.size() - 1);
}

void Plan::join(Vertex lower, Vertex upper, const std::string& name, LinkKind kind, Bandwidth capacity) {
  hops.push_back({.from = lower, .to = upper, .link = add_link(name + ".up", kind, capacity)});
  hops.push_back({.from = upper, .to = lower, .link = add_link(name + ".down", kind, capacity)});
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

void connect(const Nic& nic, Vertex switch_vertex, Plan& plan) {
  for (const NicPath& path : nic.paths) {
    plan.ports[path.rank].accesses.push_back({.vertex = switch_vertex, .up = path.up, .down = path.down});
  }
}

}  // namespace ulysim::topology
