#pragma once

// Small studies of sequences that are not one plain causal text, through the whole pipeline.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/study/machine.h"
#include "sim/study/simulate.h"
#include "tests/support/passes.h"

namespace ulysim::study::sequences {

/// Eight A100 and a model with as many key/value heads as heads; `training` and `plans` are YAML flow values.
inline scenario::Scenario parse(const std::string& training, const std::string& plans) {
  const auto data = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "share" / "ulysim";
  scenario::Scenario parsed = scenario::parse_scenario(
      {.text = "model: llama-2-7b\ncluster: {node: dgx-a100}\ntraining: " + training + "\nplans: " + plans + "\n",
       .file = "s.yaml"},
      data, {});
  tests::need_passes_of(parsed.plans);
  return parsed;
}

inline std::vector<results::Figures> figures_of(const scenario::Scenario& scenario) {
  std::vector<results::Figures> all;
  const Machine machine = build_machine(scenario);
  for (const scenario::PlanEntry& entry : scenario.plans) {
    const results::PlanResult result = simulate(scenario, machine, entry, {});
    EXPECT_TRUE(result.feasible()) << result.name;
    all.push_back(result.figures.value_or(results::Figures{}));
  }
  return all;
}

inline double part(const results::Figures& figures, const std::string& name) {
  for (const results::NamedDuration& each : figures.breakdown) {
    if (each.name == name) {
      return seconds(each.time);
    }
  }
  return 0;
}

inline std::int64_t sent(const results::Figures& figures, const std::string& purpose) {
  for (const results::CommunicationUse& use : figures.communication_by_purpose) {
    if (use.name == purpose) {
      return use.bytes_per_gpu.value();
    }
  }
  return 0;
}

}  // namespace ulysim::study::sequences
