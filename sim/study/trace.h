#pragma once

#include <vector>

#include "sim/results/run_result.h"
#include "sim/results/timeline.h"
#include "sim/workload/unroll.h"

namespace ulysim::study {

/// Every span of every simulated rank class, named for people ("layer 3 attention").
[[nodiscard]] std::vector<results::TraceRank> trace_of(const workload::OpGraph& graph,
                                                       const workload::Schedule& schedule,
                                                       const results::Timeline& timeline);

/// "layer 3 forward attention": what an op of the schedule is called in traces and explanations.
[[nodiscard]] std::string label_of(const workload::OpGraph& graph, const workload::FlatOp& flat);

}  // namespace ulysim::study
