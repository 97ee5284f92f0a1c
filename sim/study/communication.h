#pragma once

#include <span>
#include <vector>

#include "sim/results/run_result.h"
#include "sim/study/breakdown.h"
#include "sim/workload/op_graph.h"
#include "sim/workload/unroll.h"

namespace ulysim::study {

struct Communication {
  std::vector<results::CommunicationUse> by_kind{};     ///< collectives that occur, in the order of their enum
  std::vector<results::CommunicationUse> by_purpose{};  ///< likewise
};

/// Logical bytes that the GPU which sends most sends in a step (size × bus-bandwidth factor), and the time of `rank` in
/// them. One schedule for each role.
[[nodiscard]] Communication communication_of(const workload::OpGraph& graph,
                                             std::span<const workload::Schedule> schedules,
                                             const results::RankTimeline& rank, const Breakdown& breakdown);

}  // namespace ulysim::study
