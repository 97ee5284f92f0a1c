#pragma once

#include <span>
#include <vector>

#include "sim/results/run_result.h"
#include "sim/results/timeline.h"
#include "sim/workload/unroll.h"

namespace ulysim::study {

/// What passes between rank classes: a message from its sender to its receiver, a hop of a ring from a rank to the
/// next, and of any other collective its last rank to come, for which the others waited. Both ends of a flow run at
/// the same time. Classes of one collective that play different roles are not joined.
[[nodiscard]] std::vector<results::TraceFlow> flows_of(const workload::OpGraph& graph,
                                                       std::span<const workload::Schedule> schedules,
                                                       const results::Timeline& timeline);

}  // namespace ulysim::study
