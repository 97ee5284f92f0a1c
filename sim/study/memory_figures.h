#pragma once

#include "sim/memory/accountant.h"
#include "sim/results/run_result.h"
#include "sim/scenario/scenario.h"
#include "sim/workload/op_graph.h"

namespace ulysim::study {

/// Fills the memory members of `figures` from the books of the rank that peaks highest: what the allocator reserves
/// and what the device holds beside it are the framework profile's.
void set_memory(const scenario::Scenario& scenario, const scenario::PlanEntry& entry, const workload::OpGraph& graph,
                const memory::MemoryResult& books, results::Figures& figures);

/// What the samples of `figures.memory_curve` are made of. Requires set_memory with the books of this rank.
void set_memory_by_kind(const workload::OpGraph& graph, const workload::Schedule& schedule,
                        const results::RankTimeline& rank, results::Figures& figures);

}  // namespace ulysim::study
