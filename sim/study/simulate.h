#pragma once

#include "sim/results/study_result.h"
#include "sim/results/timeline.h"
#include "sim/study/machine.h"
#include "sim/study/study.h"
#include "sim/workload/unroll.h"

namespace ulysim::study {

/// One plan through the whole pipeline: logical graph → passes → engine → figures. A plan that cannot run has its
/// reasons and no figures. `suggestions` are left empty (see advice.h).
[[nodiscard]] results::PlanResult simulate(const scenario::Scenario& scenario, const Machine& machine,
                                           const scenario::PlanEntry& entry, const StudyOptions& options);

/// The stages before the figures, for `explain` and tests. The schedules, one for each role, point into the graph.
struct Stages {
  workload::OpGraph logical{};
  workload::OpGraph parallel{};
  std::vector<workload::Schedule> schedules{};
  results::Timeline timeline{};

  [[nodiscard]] const workload::Schedule& schedule_of(const results::RankTimeline& rank) const {
    return schedules[rank.role];
  }
};
/// Requires that every check() of the plan is empty. Fills what `stage` needs and what stands before it; the loads of
/// links in the timeline when `detail` is that of traces.
[[nodiscard]] std::unique_ptr<Stages> run_stages(const scenario::Scenario& scenario, const Machine& machine,
                                                 const scenario::PlanEntry& entry, Stage stage,
                                                 Detail detail = Detail::figures);

/// Why the plan cannot run; empty when it can.
[[nodiscard]] std::vector<Infeasible> check(const scenario::Scenario& scenario, const scenario::PlanEntry& entry);

/// A closed-form lower bound of the step on the same graph: the kernels of the busiest rank's compute stream, one after
/// the other and undisturbed.
[[nodiscard]] Duration estimate(const workload::OpGraph& graph, const cost::CostModel& cost);

}  // namespace ulysim::study
