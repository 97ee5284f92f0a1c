#pragma once

#include <optional>

#include "sim/results/run_result.h"
#include "sim/results/timeline.h"
#include "sim/workload/unroll.h"

namespace ulysim::study {

/// What happens on every stream of `rank` while a layer in the middle of its own runs: what is hidden behind what.
/// Nothing for a rank without layers.
[[nodiscard]] std::optional<results::LayerTimeline> layer_timeline_of(const workload::OpGraph& graph,
                                                                      const workload::Schedule& schedule,
                                                                      const results::RankTimeline& rank);

}  // namespace ulysim::study
