#pragma once

#include <span>
#include <vector>

#include "sim/results/run_result.h"
#include "sim/results/timeline.h"
#include "sim/workload/unroll.h"

namespace ulysim::study {

/// Every span of every simulated rank class, named for people ("layer 3 attention"), with its GPU's memory; what goes
/// from class to class; the load of the links. Between ranks of one class nothing is drawn: they are one track.
[[nodiscard]] results::Trace trace_of(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules,
                                      const results::Timeline& timeline);

/// "layer 3 forward attention": what an op of a role's schedule is called in traces and explanations.
[[nodiscard]] std::string label_of(const workload::OpGraph& graph, const workload::Schedule& schedule, std::size_t op);

}  // namespace ulysim::study
