#pragma once

#include <cstdint>
#include <vector>

#include "hw_models/topology/topology.h"
#include "sim/engine/traffic_graph.h"

namespace ulysim::engine {

/// A colour for everything; things of equal colour behave alike. Colours count from 0 in order of first appearance.
struct Colours {
  std::vector<std::uint32_t> rank{};
  std::vector<std::uint32_t> unit{};
  std::vector<std::uint32_t> transfer{};
  std::vector<std::uint32_t> link{};
};

/// The coarsest equitable partition that refines `start` (a colour per rank: what work it does), the kinds and
/// capacities of links and the static figures of units and transfers: any two ranks of one colour belong to equally
/// many units of each colour in each part, any two links of one colour are crossed by equally many transfers of each
/// colour, and so on for all four. Whatever is a function of these neighbourhoods, max-min rates and the order of
/// events among them, is then constant over a colour (Grohe, Kersting, Mladenov, Schweitzer, "Color Refinement and
/// its Applications", 2017).
[[nodiscard]] Colours refine(const TrafficGraph& graph, const topology::Topology& topology,
                             std::vector<std::uint32_t> start);

/// Every thing its own colour.
[[nodiscard]] Colours all_distinct(const TrafficGraph& graph, const topology::Topology& topology);

}  // namespace ulysim::engine
