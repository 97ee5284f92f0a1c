#include <fmt/format.h>

#include "sim/base/format.h"
#include "sim/study/advice.h"
#include "sim/study/asked.h"
#include "sim/study/simulate.h"
#include "sim/study/study.h"

namespace ulysim::study {

namespace {

results::StudyResult begin(const scenario::Scenario& scenario) {
  results::StudyResult study = study_of(scenario);
  if (beyond_positions(scenario, study.scenario.sequence_length)) {
    study.warnings.push_back(fmt::format("{} tokens are beyond the {} positions that {} was made for",
                                         human_count(study.scenario.sequence_length),
                                         human_count(scenario.model.max_positions), scenario.model.name));
  }
  return study;
}

void add_plan(const scenario::Scenario& scenario, const Machine& machine, const scenario::PlanEntry& entry,
              const StudyOptions& options, results::StudyResult& study) {
  results::PlanResult result = simulate(scenario, machine, entry, options);
  result.suggestions = advise(scenario, machine, entry, result);
  study.plans.push_back(std::move(result));
}

}  // namespace

results::StudyResult compare(const scenario::Scenario& scenario, const StudyOptions& options) {
  results::StudyResult study = begin(scenario);
  const Machine machine = build_machine(scenario);
  for (const scenario::PlanEntry& entry : scenario.plans) {
    add_plan(scenario, machine, entry, options, study);
  }
  return study;
}

results::StudyResult run(const scenario::Scenario& scenario, const StudyOptions& options) {
  results::StudyResult study = begin(scenario);
  add_plan(scenario, build_machine(scenario), scenario.plans.front(), options, study);
  return study;
}

}  // namespace ulysim::study
