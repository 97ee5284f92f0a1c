#pragma once

#include <string>
#include <vector>

#include "hw_models/topology/plan.h"

namespace ulysim::topology {

/// One node while it is built; its GPUs are ranks `first_rank` … of the plan.
struct NodePlan {
  const spec::Cluster& cluster;
  std::string prefix{};  ///< "node3"
  std::size_t node{};
  std::size_t first_rank{};
};

/// The PCIe side of a node: one uplink for each switch, by switch.
struct Uplinks {
  std::vector<LinkId> up{};
  std::vector<LinkId> down{};
  std::vector<VertexId> switches{};
  std::vector<VertexId> roots{};  ///< where the uplink leads: a socket, or the whole host
  /// Where GPUs talk over PCIe: out of each socket and into it.
  std::vector<LinkId> socket_up{};
  std::vector<LinkId> socket_down{};
};

/// NVSwitch planes or bridges, for the fabrics that have them.
void add_nvlink(const NodePlan& node, Plan& plan);

/// PCIe links of the GPUs and uplinks of their switches; where no NVSwitch joins the GPUs also the sockets, the links
/// between them, and the way from GPU to GPU.
[[nodiscard]] Uplinks add_pcie(const NodePlan& node, Plan& plan);

/// Links from PCIe switch `from` to switch `to`, in order: none when they are the same, the uplinks of both, and the
/// links between their sockets where these are two. Nothing but uplinks where sockets are not modelled.
[[nodiscard]] std::vector<LinkId> across(const spec::Node& node, const Uplinks& uplinks, std::size_t from,
                                         std::size_t to);

}  // namespace ulysim::topology
