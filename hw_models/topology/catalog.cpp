#include <array>

#include "hw_models/topology/builders.h"
#include "sim/base/check.h"

namespace ulysim::topology {
namespace {

using Builder = void (*)(const spec::Cluster&, const std::vector<Nic>&, Plan&);

const std::array<TopologyInfo, 2> kInfos{
    {{.name = "rail-optimized", .summary = "NIC i of every node on rail switch i; rails meet in a spine"},
     {.name = "fat-tree", .summary = "all NICs of a node on one leaf switch; leaves meet in a spine"}}};
// In the order of kInfos.
constexpr std::array<Builder, 2> kBuilders{add_rails, add_fat_tree};

}  // namespace

const char* name(VertexKind kind) {
  constexpr std::array<const char*, 7> kNames{"gpu",    "nvlink_switch", "pcie_switch",   "host",
                                              "memory", "drives",        "network_switch"};
  return kNames.at(static_cast<std::size_t>(kind));
}

const char* name(LinkKind kind) {
  constexpr std::array<const char*, kLinkKinds> kNames{"nvlink", "nic", "fabric", "pcie", "host_memory", "nvme"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::span<const TopologyInfo> topologies() {
  return kInfos;
}

Topology build(const spec::Cluster& cluster) {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == cluster.network.topology) {
      Plan plan;
      const std::vector<Nic> nics = add_nodes(cluster, plan);
      kBuilders[i](cluster, nics, plan);
      return assemble(std::move(plan));
    }
  }
  ULYSIM_CHECK(false, "topology '{}' is none of topologies()", cluster.network.topology);
  return {};
}

}  // namespace ulysim::topology
