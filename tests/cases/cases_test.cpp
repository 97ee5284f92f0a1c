// Which question this answers: would the people who asked these questions in public have been told right?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "sim/study/maxseq.h"
#include "sim/study/validate_scenario.h"
#include "tests/cases/case_file.h"
#include "tests/study/lab.h"
#include "tests/support/passes.h"

namespace ulysim::cases {
namespace {

using testing::HasSubstr;

const std::filesystem::path kFile = std::filesystem::path(ULYSIM_SOURCE_DIR) / "tests" / "cases" / "cases.yaml";

/// What became of a run: its scenario, or the messages with which it was refused.
struct Loaded {
  std::optional<scenario::Scenario> scenario{};
  std::vector<std::string> messages{};

  [[nodiscard]] bool not_yet_supported() const {
    return !scenario && std::all_of(messages.begin(), messages.end(), [](const std::string& message) {
      return message.find("not yet supported") != std::string::npos;
    });
  }
};

Loaded load(const Run& run, const std::string& name) {
  Loaded out;
  try {
    out.scenario = study::row_scenario({.fragment = run.fragment,
                                        .plan = &run.plan,
                                        .path = name,
                                        .where = run.plan.where,
                                        .folder = kFile.parent_path()},
                                       study::data_folder());
  } catch (const InputError& error) {
    for (const Diagnostic& found : error.diagnostics()) {
      out.messages.push_back(found.message);
    }
  }
  return out;
}

double named(const std::vector<results::NamedBytes>& list, const std::string& name) {
  const auto* found = study::find(list, name);
  EXPECT_NE(found, nullptr) << "no memory of kind '" << name << "'";
  return found == nullptr ? 0.0 : gibibytes(found->bytes);
}

/// "longest" in tokens; "memory.KIND", of the peak, and the memories in GiB; "step_time_s".
double figure_of(const scenario::Scenario& scenario, const std::string& name) {
  const study::Machine machine = study::build_machine(scenario);
  if (name == "longest") {
    const auto plan = study::longest_of(scenario, machine, scenario.plans.front(), {.detail = study::Detail::memory});
    return static_cast<double>(plan.longest->tokens.value_or(0));
  }
  const auto plan = study::simulate(scenario, machine, scenario.plans.front(), {.detail = study::Detail::memory});
  if (!plan.figures) {
    ADD_FAILURE() << "cannot run: " << (plan.infeasible.empty() ? "" : plan.infeasible.front().reason);
    return 0.0;
  }
  const results::Figures& figures = *plan.figures;
  constexpr std::string_view kMemory = "memory.";
  if (name.starts_with(kMemory)) {
    return named(figures.memory, name.substr(kMemory.size()));
  }
  if (name == "step_time_s") {
    return seconds(figures.step_time);
  }
  if (name == "peak_gpu_memory_gib") {
    return gibibytes(figures.peak_gpu_memory);
  }
  if (name == "peak_gpu_allocated_gib") {
    return gibibytes(figures.peak_gpu_allocated);
  }
  if (name == "peak_gpu_reserved_gib") {
    return gibibytes(figures.peak_gpu_reserved);
  }
  if (name == "peak_host_memory_gib_per_node") {
    return gibibytes(figures.peak_host_memory_per_node);
  }
  ADD_FAILURE() << "no figure is called '" << name << "'";
  return 0.0;
}

std::string fit_of(const scenario::Scenario& scenario) {
  const auto plan = study::simulate(scenario, study::build_machine(scenario), scenario.plans.front(),
                                    {.detail = study::Detail::memory});
  if (!plan.figures) {
    return "cannot run";
  }
  switch (plan.figures->fit()) {
    case results::Fit::yes:
      return "yes";
    case results::Fit::risky:
      return "risky";
    case results::Fit::no:
      break;
  }
  return "no";
}

/// What does not hold; empty when all does.
std::string wrong(const Expectation& expectation, const std::map<std::string, Loaded>& loaded) {
  const Loaded& run = loaded.at(expectation.run);
  if (expectation.refused) {
    const bool said = std::any_of(run.messages.begin(), run.messages.end(), [&](const std::string& message) {
      return message.find(*expectation.refused) != std::string::npos;
    });
    return said ? "" : "not refused with that: " + testing::PrintToString(run.messages);
  }
  if (run.scenario) {
    tests::need_passes_of(run.scenario->plans);
  } else {
    return "refused: " + testing::PrintToString(run.messages);
  }
  const scenario::Scenario& scenario = *run.scenario;
  if (expectation.cannot) {
    const auto reasons = study::check(scenario, scenario.plans.front());
    const bool said = std::any_of(reasons.begin(), reasons.end(), [&](const Infeasible& why) {
      return (why.reason + "; " + why.suggestion).find(*expectation.cannot) != std::string::npos;
    });
    return said ? "" : fmt::format("{} reasons, {}", reasons.size(), reasons.empty() ? "" : reasons.front().reason);
  }
  if (expectation.ulysses_degrees) {
    const auto degrees = study::model_info(scenario.model).ulysses_degrees;
    return degrees == *expectation.ulysses_degrees ? "" : testing::PrintToString(degrees);
  }
  if (!expectation.fit.empty()) {
    const std::string fit = fit_of(scenario);
    if (std::find(expectation.fit.begin(), expectation.fit.end(), fit) == expectation.fit.end()) {
      return "fits: " + fit;
    }
  }
  if (expectation.limit) {
    const auto plan = study::longest_of(scenario, study::build_machine(scenario), scenario.plans.front(),
                                        {.detail = study::Detail::memory});
    if (results::name(plan.longest->limit) != *expectation.limit) {
      return fmt::format("limited by {} at {}", results::name(plan.longest->limit), plan.longest->tokens.value_or(0));
    }
  }
  if (expectation.between) {
    double value = figure_of(scenario, expectation.figure);
    if (expectation.over) {
      value /= figure_of(*loaded.at(*expectation.over).scenario, expectation.figure);
    }
    if (expectation.minus) {
      value -= figure_of(*loaded.at(*expectation.minus).scenario, expectation.figure);
    }
    if (!(expectation.between->first <= value && value <= expectation.between->second)) {
      return fmt::format("{} is {}", expectation.figure, value);
    }
  }
  return "";
}

class Cases : public testing::TestWithParam<Case> {};

TEST_P(Cases, AreToldRight) {
  const Case& one = GetParam();
  SCOPED_TRACE(one.says + " (" + one.source + ")");
  std::map<std::string, Loaded> loaded;
  for (const auto& [name, run] : one.runs) {
    loaded[name] = load(run, one.id + "." + name);
  }
  std::vector<std::string> open;
  for (const Expectation& expectation : one.expect) {
    SCOPED_TRACE(expectation.run);
    const auto waits = [&](const std::string& run) { return loaded.at(run).not_yet_supported(); };
    if (!expectation.refused && (waits(expectation.run) || waits(expectation.over.value_or(expectation.run)) ||
                                 waits(expectation.minus.value_or(expectation.run)))) {
      open.push_back(expectation.run + " waits: " + testing::PrintToString(loaded.at(expectation.run).messages));
      continue;
    }
    const std::string found = wrong(expectation, loaded);
    if (!expectation.misses) {
      EXPECT_EQ(found, "");
    } else if (found.empty()) {
      open.push_back(expectation.run + " holds now, 'misses' can go: " + *expectation.misses);
    } else {
      open.push_back(expectation.run + " misses: " + found);
    }
  }
  if (!open.empty() && !HasFailure()) {
    GTEST_SKIP() << testing::PrintToString(open);
  }
}

INSTANTIATE_TEST_SUITE_P(Public, Cases, testing::ValuesIn(read_cases(kFile)),
                         [](const testing::TestParamInfo<Case>& each) { return each.param.id; });

}  // namespace
}  // namespace ulysim::cases
