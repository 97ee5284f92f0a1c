#include <fmt/format.h>

#include "hw_models/topology/builders.h"

namespace ulysim::topology {

/// NIC i of every node hangs on rail i, which is one switch as far as traffic can tell (a rail wider than one switch
/// is non-blocking inside its scalable unit: NVIDIA DGX SuperPOD reference architecture). Rails meet in one spine.
void add_rails(const spec::Cluster& cluster, const std::vector<Nic>& nics, Plan& plan) {
  std::vector<VertexId> rails;
  for (const Nic& nic : nics) {
    while (rails.size() <= nic.index) {
      rails.push_back(
          plan.add_vertex({.name = fmt::format("rail {}", rails.size()), .kind = VertexKind::network_switch}));
    }
    connect(nic, rails[nic.index], plan);
  }
  if (rails.size() < 2) {
    return;
  }
  const VertexId spine = plan.add_vertex({.name = "spine", .kind = VertexKind::network_switch});
  const Bandwidth capacity =
      nic_capacity(cluster) * (static_cast<double>(cluster.nodes) / cluster.network.oversubscription);
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    plan.join({.name = fmt::format("rail{}", rail),
               .kind = LinkKind::fabric,
               .capacity = capacity,
               .from = rails[rail],
               .to = spine});
  }
}

}  // namespace ulysim::topology
