#include <fmt/format.h>

#include <cmath>

#include "sim/base/format.h"
#include "sim/study/advice.h"
#include "sim/study/asked.h"
#include "sim/study/simulate.h"
#include "sim/study/study.h"

namespace ulysim::study {

namespace {

results::StudyResult begin(const scenario::Scenario& scenario, const Machine& machine) {
  results::StudyResult study = study_of(scenario, machine);
  // Positions begin anew with each packed document.
  const std::int64_t longest = scenario.plans.front().plan.document_lengths().longest;
  if (beyond_positions(scenario, longest)) {
    study.warnings.push_back(fmt::format("{} tokens are beyond the {} positions that {} was made for",
                                         human_count(longest), human_count(scenario.model.max_positions),
                                         scenario.model.name));
  }
  return study;
}

/// What the lengths of a plan's sequences cost, in sentences.
void note_sequences(const results::PlanResult& plan, results::StudyResult& study) {
  if (!plan.figures) {
    return;
  }
  if (const auto& padding = plan.figures->padding) {
    study.warnings.push_back(fmt::format(
        "{}: {} of a step's tokens are padding ({:.2f}%), {:.2f}% more executed FLOPs; tokens/s and MFU "
        "count none of it",
        plan.name, human_count(std::lround(padding->tokens)), padding->share * 100.0, padding->extra_executed * 100.0));
  }
  if (plan.figures->attention_imbalance.value_or(1.0) > 1.005) {
    study.warnings.push_back(
        fmt::format("{}: packed documents give the busiest rank {:.2f} times the attention of the average one",
                    plan.name, *plan.figures->attention_imbalance));
  }
}

void add_plan(const scenario::Scenario& scenario, const Machine& machine, const scenario::PlanEntry& entry,
              const StudyOptions& options, results::StudyResult& study) {
  results::PlanResult result = simulate(scenario, machine, entry, options);
  result.suggestions = advise(scenario, machine, entry, result);
  note_sequences(result, study);
  study.plans.push_back(std::move(result));
}

}  // namespace

results::StudyResult compare(const scenario::Scenario& scenario, const StudyOptions& options) {
  const Machine machine = build_machine(scenario);
  results::StudyResult study = begin(scenario, machine);
  for (const scenario::PlanEntry& entry : scenario.plans) {
    tell(options.on_progress, study.plans.size(), scenario.plans.size());
    add_plan(scenario, machine, entry, options, study);
  }
  return study;
}

results::StudyResult run(const scenario::Scenario& scenario, const StudyOptions& options) {
  const Machine machine = build_machine(scenario);
  results::StudyResult study = begin(scenario, machine);
  add_plan(scenario, machine, scenario.plans.front(), options, study);
  return study;
}

}  // namespace ulysim::study
