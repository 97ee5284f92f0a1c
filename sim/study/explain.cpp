#include <fmt/format.h>

#include <iterator>

#include "sim/base/format.h"
#include "sim/study/simulate.h"
#include "sim/study/study.h"
#include "sim/study/trace.h"
#include "sim/workload/dump.h"

namespace ulysim::study {

namespace {

const char* word_for(results::Cause cause) {
  switch (cause) {
    case results::Cause::nothing:
      return "at once";
    case results::Cause::stream:
      return "after in its stream:";
    case results::Cause::dependency:
      return "needs";
    case results::Cause::issue:
      return "when the host issued it";
    case results::Cause::credit:
      return "with the credit of";
    case results::Cause::peers:
      return "when its peers had come";
  }
  return "";
}

bool names_an_op(results::Cause cause) {
  return cause == results::Cause::stream || cause == results::Cause::dependency || cause == results::Cause::credit;
}

std::string timeline_text(const Stages& stages) {
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "step {}\n", human(stages.timeline.end - Instant{}));
  for (const results::RankTimeline& rank : stages.timeline.ranks) {
    const workload::Schedule& schedule = stages.schedule_of(rank);
    fmt::format_to(to, "rank {} (class of {}): begin ps, end ps, stream, op, why not earlier\n",
                   rank.representative.index(), rank.members.size());
    for (std::size_t i = 0; i < rank.spans.size(); ++i) {
      const results::Span& span = rank.spans[i];
      fmt::format_to(to, "{:>18} {:>18} {:<14} {}, {}", span.begin.value(), span.end.value(),
                     name(schedule.ops[i].op->stream), label_of(stages.parallel, schedule, i), word_for(span.cause));
      if (names_an_op(span.cause)) {
        fmt::format_to(to, " {}", label_of(stages.parallel, schedule, span.cause_op));
      }
      out += "\n";
    }
  }
  return out;
}

}  // namespace

std::string explain(const scenario::Scenario& scenario, Stage stage, std::size_t plan) {
  const scenario::PlanEntry& entry = scenario.plans.at(plan);
  const std::vector<Infeasible> reasons = stage == Stage::logical ? std::vector<Infeasible>{} : check(scenario, entry);
  if (!reasons.empty()) {
    std::string out = fmt::format("{} cannot run:\n", entry.plan.name);
    for (const Infeasible& reason : reasons) {
      fmt::format_to(std::back_inserter(out), "  {}: {}\n", reason.reason, reason.suggestion);
    }
    return out;
  }
  const auto stages = run_stages(scenario, build_machine(scenario), entry, stage);
  switch (stage) {
    case Stage::logical:
      return workload::dump(stages->logical);
    case Stage::parallel:
      return workload::dump(stages->parallel);
    case Stage::timeline:
      return timeline_text(*stages);
  }
  return {};
}

}  // namespace ulysim::study
