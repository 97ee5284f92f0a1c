#include <fmt/format.h>

#include "hw_models/topology/builders.h"

namespace ulysim::topology {

/// NIC i of every node hangs on rail i, which is one switch as far as traffic can tell (a rail wider than one switch
/// is non-blocking inside its scalable unit: NVIDIA DGX SuperPOD reference architecture). Rails meet in one spine.
void add_rails(const spec::Cluster& cluster, const std::vector<Nic>& nics, Plan& plan) {
  std::vector<Vertex> rails;
  for (const Nic& nic : nics) {
    while (rails.size() <= nic.index) {
      rails.push_back(plan.add_vertex());
    }
    connect(nic, rails[nic.index], plan);
  }
  if (rails.size() < 2) {
    return;
  }
  const Vertex spine = plan.add_vertex();
  const Bandwidth capacity =
      nic_capacity(cluster) * (static_cast<double>(cluster.nodes) / cluster.network.oversubscription);
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    plan.join(rails[rail], spine, fmt::format("rail{}", rail), LinkKind::fabric, capacity);
  }
}

}  // namespace ulysim::topology
