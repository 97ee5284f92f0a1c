#pragma once

// The shipped scenarios and small ones from text, for tests of whole plans.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/scenario/scenario.h"
#include "sim/study/machine.h"
#include "sim/study/simulate.h"
#include "tests/support/passes.h"

namespace ulysim::study {

/// The data folder of the build tree: test programs lie one folder below the programs.
inline std::filesystem::path data_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "share" / "ulysim";
}

inline std::filesystem::path runs_folder() {
  return std::filesystem::path(ULYSIM_SOURCE_DIR) / "scenarios" / "runs";
}

/// Names of all shipped runs, sorted, but for the one of 16,384 GPUs, of which speed_test.cpp takes care.
inline std::vector<std::string> run_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(runs_folder())) {
    if (file.path().extension() == ".yaml" && file.path().stem() != "llama3-405b-128k-16384xh100") {
      names.push_back(file.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline scenario::Scenario load_run(const std::string& name) {
  scenario::Scenario run = scenario::load_scenario(runs_folder() / (name + ".yaml"), data_folder(), {});
  tests::need_passes_of(run.plans);
  return run;
}

/// What a small study is made of, each a YAML flow value.
struct Study {
  std::string model{"llama-3.1-8b"};
  std::string cluster{"{node: dgx-h100}"};
  std::string training{};
  std::string plans{};
};
inline scenario::Scenario parse(const Study& study) {
  scenario::Scenario parsed =
      scenario::parse_scenario({.text = "model: " + study.model + "\ncluster: " + study.cluster +
                                        "\ntraining: " + study.training + "\nplans: " + study.plans + "\n",
                                .file = "s.yaml"},
                               data_folder(), {});
  tests::need_passes_of(parsed.plans);
  return parsed;
}

/// Plans that can run.
inline std::vector<scenario::PlanEntry> feasible(const scenario::Scenario& scenario) {
  std::vector<scenario::PlanEntry> out;
  for (const scenario::PlanEntry& entry : scenario.plans) {
    if (check(scenario, entry).empty()) {
      out.push_back(entry);
    }
  }
  return out;
}

inline results::Figures figures_of(const scenario::Scenario& scenario, std::size_t plan = 0) {
  const results::PlanResult result = simulate(scenario, build_machine(scenario), scenario.plans.at(plan), {});
  EXPECT_TRUE(result.feasible()) << result.name;
  return result.figures.value_or(results::Figures{});
}

template <class Named>
const Named* find(const std::vector<Named>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Named& one) { return one.name == name; });
  return found == list.end() ? nullptr : &*found;
}
inline std::int64_t bytes_of(const std::vector<results::CommunicationUse>& list, const std::string& name) {
  const auto* found = find(list, name);
  return found == nullptr ? 0 : found->bytes_per_gpu.value();
}
inline std::int64_t bytes_of(const std::vector<results::NamedBytes>& list, const std::string& name) {
  const auto* found = find(list, name);
  return found == nullptr ? 0 : found->bytes.value();
}
inline std::int64_t time_of(const std::vector<results::NamedDuration>& list, const std::string& name) {
  const auto* found = find(list, name);
  return found == nullptr ? 0 : found->time.value();
}

/// Name of a test over scenarios: letters and digits only.
inline std::string test_name(const testing::TestParamInfo<std::string>& run) {
  std::string text = run.param;
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

inline engine::Machine hardware(const scenario::Scenario& scenario, const Machine& machine,
                                const scenario::PlanEntry& entry) {
  return {.cluster = &scenario.cluster,
          .topology = &machine.topology,
          .cost = machine.cost.get(),
          .host = {.issue_time = entry.framework.issue_time_per_kernel.value,
                   .communication_sms = entry.framework.communication_sms.value}};
}

/// CPU time since `begin` (of this process: a busy machine does not count). Sanitizers make programs several times
/// slower, and nothing is promised of those.
inline void expect_cpu_seconds_since(std::clock_t begin, double most) {
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, most) << "seconds of CPU time";
#else
  (void)begin, (void)most;
#endif
}

}  // namespace ulysim::study
