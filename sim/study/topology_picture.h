#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hw_models/topology/topology.h"
#include "sim/results/study_result.h"
#include "sim/results/timeline.h"

namespace ulysim::study {

/// What of a machine can be drawn: its first two nodes, and the switches between nodes that they hang on.
struct Drawing {
  results::TopologyPicture picture{};
  std::vector<LinkId> links{};  ///< of the topology, ascending: those of the picture
};
[[nodiscard]] Drawing draw(const topology::Topology& topology);

/// By link of the drawing, the class of links that it belongs to in `timeline`.
[[nodiscard]] std::vector<std::optional<std::uint32_t>> classes_of(const Drawing& drawing,
                                                                   const results::Timeline& timeline);

}  // namespace ulysim::study
