#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hw_models/topology/plan.h"
#include "sim/base/check.h"

namespace ulysim::topology {
namespace {

/// NICs of a node as far as routes tell them apart: GPUs that share one share its links, and the several NICs of
/// one GPU carry an even split, so they are one link.
std::int64_t distinct_nics(const spec::Node& node) {
  return std::min(node.nics.value, node.gpus);
}

void add_host_paths(const spec::Cluster& cluster, const std::string& prefix, std::size_t first_rank, Plan& plan) {
  const spec::Node& node = cluster.node;
  const auto gpus = static_cast<std::size_t>(cluster.gpus_per_node());
  const auto share = static_cast<std::size_t>(node.gpus_per_pcie_uplink.value);
  const LinkId memory = plan.add_link(prefix + ".memory", LinkKind::host_memory, node.host_memory_bandwidth.value);
  LinkId uplink_up;
  LinkId uplink_down;
  for (std::size_t local = 0; local < gpus; ++local) {
    const Port& port = plan.ports[first_rank + local];
    const std::string gpu = fmt::format("{}.gpu{}", prefix, local);
    if (local % share == 0) {
      const std::string uplink = fmt::format("{}.pcie{}", prefix, local / share);
      uplink_up = plan.add_link(uplink + ".up", LinkKind::pcie, node.pcie_uplink_bandwidth.value);
      uplink_down = plan.add_link(uplink + ".down", LinkKind::pcie, node.pcie_uplink_bandwidth.value);
    }
    const LinkId up = plan.add_link(gpu + ".pcie.up", LinkKind::pcie, node.pcie_bandwidth.value);
    const LinkId down = plan.add_link(gpu + ".pcie.down", LinkKind::pcie, node.pcie_bandwidth.value);
    plan.hops.push_back({.from = port.out, .to = port.port_out, .link = up});
    plan.hops.push_back({.from = port.port_in, .to = port.in, .link = down});
    plan.to_host.push_back({up, uplink_up, memory});
    plan.from_host.push_back({memory, uplink_down, down});
    plan.host_memory.push_back({memory});
  }
}

void add_gpus(const spec::Cluster& cluster, const std::string& prefix, std::size_t node, Plan& plan) {
  const auto gpus = static_cast<std::size_t>(cluster.gpus_per_node());
  const Vertex nvswitch = plan.add_vertex();
  for (std::size_t local = 0; local < gpus; ++local) {
    const auto nic =
        local * static_cast<std::size_t>(distinct_nics(cluster.node)) / static_cast<std::size_t>(cluster.node.gpus);
    const Port port{.out = plan.add_vertex(),
                    .in = plan.add_vertex(),
                    .port_out = plan.add_vertex(),
                    .port_in = plan.add_vertex(),
                    .node = node,
                    .local = local,
                    .nic = nic};
    const std::string gpu = fmt::format("{}.gpu{}", prefix, local);
    const Bandwidth rate = cluster.node.nvlink_bandwidth.value;
    plan.hops.push_back(
        {.from = port.out, .to = nvswitch, .link = plan.add_link(gpu + ".nvlink.up", LinkKind::nvlink, rate)});
    plan.hops.push_back(
        {.from = nvswitch, .to = port.in, .link = plan.add_link(gpu + ".nvlink.down", LinkKind::nvlink, rate)});
    plan.ports.push_back(port);
  }
}

void add_nics(const spec::Cluster& cluster, const std::string& prefix, std::size_t node, std::size_t first_rank,
              Plan& plan, std::vector<Nic>& nics) {
  for (std::size_t rank = first_rank; rank < plan.ports.size(); ++rank) {
    const std::size_t index = plan.ports[rank].nic;
    if (rank == first_rank || nics.back().index != index) {
      const std::string name = fmt::format("{}.nic{}", prefix, index);
      nics.push_back({.node = node,
                      .index = index,
                      .up = plan.add_link(name + ".up", LinkKind::nic, nic_capacity(cluster)),
                      .down = plan.add_link(name + ".down", LinkKind::nic, nic_capacity(cluster))});
    }
    nics.back().ranks.push_back(rank);
  }
}

}  // namespace

LinkId Plan::add_link(std::string name, LinkKind kind, Bandwidth capacity) {
  links.push_back({.name = std::move(name), .kind = kind, .capacity = capacity});
  return LinkId(links.size() - 1);
}

Bandwidth nic_capacity(const spec::Cluster& cluster) {
  const spec::Node& node = cluster.node;
  const Bandwidth one = cluster.network.nic_bandwidth.value_or(node.nic_bandwidth.value);
  return one * static_cast<double>(node.nics.value / distinct_nics(node));
}

std::vector<Nic> add_nodes(const spec::Cluster& cluster, Plan& plan) {
  ULYSIM_CHECK(cluster.nodes > 0 && cluster.gpus > 0 && cluster.gpus % cluster.nodes == 0, "{} GPUs over {} nodes",
               cluster.gpus, cluster.nodes);
  ULYSIM_CHECK(cluster.gpus_per_node() <= cluster.node.gpus, "{} GPUs used of a node of {}", cluster.gpus_per_node(),
               cluster.node.gpus);
  std::vector<Nic> nics;
  for (std::size_t node = 0; node < static_cast<std::size_t>(cluster.nodes); ++node) {
    const std::string prefix = fmt::format("node{}", node);
    const std::size_t first_rank = plan.ports.size();
    add_gpus(cluster, prefix, node, plan);
    add_host_paths(cluster, prefix, first_rank, plan);
    if (cluster.nodes > 1) {
      add_nics(cluster, prefix, node, first_rank, plan, nics);
    }
  }
  return nics;
}

void connect(const Nic& nic, Vertex switch_vertex, Plan& plan) {
  for (const std::size_t rank : nic.ranks) {
    plan.hops.push_back({.from = plan.ports[rank].port_out, .to = switch_vertex, .link = nic.up});
    plan.hops.push_back({.from = switch_vertex, .to = plan.ports[rank].port_in, .link = nic.down});
  }
}

}  // namespace ulysim::topology
