#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reports/output.h"
#include "sim/base/named.h"
#include "sim/scenario/scenario.h"
#include "sim/study/study.h"
#include "tools/command.h"
#include "tools/study_input.h"

namespace ulysim::tools {
namespace {

std::size_t plan_index(const scenario::Scenario& scenario, const Arguments& arguments) {
  if (arguments.plans.empty()) {
    return 0;
  }
  std::vector<std::string> names;
  for (const scenario::PlanEntry& entry : scenario.plans) {
    names.push_back(entry.plan.name);
  }
  const std::string& wanted = arguments.plans.front();
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end()) {
    throw UsageError(fmt::format("there is no plan '{}'{}", wanted, did_you_mean(wanted, names)));
  }
  return static_cast<std::size_t>(found - names.begin());
}

int run(const Arguments& arguments) {
  static const std::vector<std::string> kStages{"scenario", "logical", "parallel", "timeline"};
  const auto stage = std::find(kStages.begin(), kStages.end(), arguments.stage);
  if (stage == kStages.end()) {
    throw UsageError(fmt::format("unknown stage '{}'{}", arguments.stage, did_you_mean(arguments.stage, kStages)));
  }
  Arguments without_plan = arguments;
  without_plan.plans.clear();
  const scenario::Scenario scenario = load_study(without_plan);
  const std::size_t plan = plan_index(scenario, arguments);
  if (stage == kStages.begin()) {
    reports::write_stdout(scenario::describe(scenario));
  } else {
    reports::write_stdout(study::explain(scenario, static_cast<study::Stage>(stage - kStages.begin() - 1), plan));
  }
  return kDone;
}

}  // namespace

Command explain_command() {
  return {.name = "explain",
          .summary = "print a stage on the way: the scenario, the op graph, the parallel graph, the timeline",
          .positional = "SCENARIO",
          .positional_help = "YAML file of a study",
          .options = {Options::stage, Options::plan_name},
          .examples = "  ulysim explain study.yaml --stage parallel --plan ulysses=8\n",
          .run = run};
}

}  // namespace ulysim::tools
