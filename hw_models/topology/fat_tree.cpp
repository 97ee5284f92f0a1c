#include <fmt/format.h>

#include <algorithm>

#include "hw_models/topology/builders.h"

namespace ulysim::topology {
namespace {

/// Ports down of a 64-port leaf with as many up (NVIDIA QM9700, a two-level fat tree).
constexpr std::size_t kLeafPorts = 32;

}  // namespace

/// All NICs of a node hang on one leaf, which takes as many nodes as its ports allow; leaves meet in one spine.
void add_fat_tree(const spec::Cluster& cluster, const std::vector<Nic>& nics, Plan& plan) {
  if (nics.empty()) {
    return;
  }
  const auto ports_per_node = static_cast<std::size_t>(cluster.node.nics.value);
  const std::size_t nodes_per_leaf = std::max<std::size_t>(1, kLeafPorts / ports_per_node);
  std::vector<VertexId> leaves;
  std::vector<std::size_t> nics_of;
  for (const Nic& nic : nics) {
    const std::size_t leaf = nic.node / nodes_per_leaf;
    if (leaf == leaves.size()) {
      leaves.push_back(plan.add_vertex({.name = fmt::format("leaf {}", leaf), .kind = VertexKind::network_switch}));
      nics_of.push_back(0);
    }
    connect(nic, leaves[leaf], plan);
    ++nics_of[leaf];
  }
  if (leaves.size() < 2) {
    return;
  }
  const VertexId spine = plan.add_vertex({.name = "spine", .kind = VertexKind::network_switch});
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const Bandwidth capacity =
        nic_capacity(cluster) * (static_cast<double>(nics_of[leaf]) / cluster.network.oversubscription);
    plan.join({.name = fmt::format("leaf{}", leaf),
               .kind = LinkKind::fabric,
               .capacity = capacity,
               .from = leaves[leaf],
               .to = spine});
  }
}

}  // namespace ulysim::topology
