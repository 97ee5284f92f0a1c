#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/cluster.h"
#include "hw_models/spec/framework.h"
#include "sim/scenario/sequence.h"
#include "sim/strategies/plan.h"
#include "sim/workload/transformer.h"

namespace ulysim::scenario {

/// One plan, with every training option resolved.
struct PlanEntry {
  strategies::Plan plan{};
  spec::Framework framework{};
  std::optional<std::int64_t> total_tokens{};  ///< of the whole training run
  Padding padding{};                           ///< as asked for; the plan's lengths are filled up already
  std::vector<std::string> overridden{};       ///< training keys that the plan itself sets, in schema order
};

/// A study, loaded and resolved: catalogue names looked up, defaults filled in, degrees multiplied out.
struct Scenario {
  std::string name{};
  std::string text{};        ///< the document with all overrides, as a scenario file; what is left open stays open
  std::string model_name{};  ///< as written: a catalogue name or a path
  workload::Transformer model{};
  spec::Cluster cluster{};
  cost::KernelProfile kernels{};               ///< of the cluster's GPU
  std::vector<PlanEntry> plans{};              ///< at least one; names are unique
  std::optional<std::int64_t> total_tokens{};  ///< as `training` says; a plan may have its own
  std::optional<double> price_per_gpu_hour{};
};

/// One change that the command line makes: "training.sequence_length=2Mi", "plans.0.ulysses=4", laid over the document
/// before it is read. The value is read as YAML. Messages about it are located in `origin`:`number`.
struct Override {
  std::string text{};
  std::string origin{"--set"};
  int number{1};  ///< the how-manieth of its origin
};

struct LoadOptions {
  std::vector<Override> overrides{};
};

/// `data` is the folder that holds `catalog` and `scenarios`.
/// Throws InputError with everything that is wrong, each with file:line:column.
[[nodiscard]] Scenario load_scenario(const std::filesystem::path& path, const std::filesystem::path& data,
                                     const LoadOptions& options);

/// The same from text; relative model paths count from `folder`.
struct ScenarioText {
  std::string text{};
  std::string file{};  ///< its name in messages
  std::filesystem::path folder{};
};
[[nodiscard]] Scenario parse_scenario(const ScenarioText& text, const std::filesystem::path& data,
                                      const LoadOptions& options);

/// The longest sequence_length that a scenario may give to this plan.
[[nodiscard]] std::int64_t longest_sequence(const workload::Transformer& model, const strategies::Plan& plan);

/// Every resolved key of a plan with its value as text, in schema order: for the echo in results.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> options_of(const PlanEntry& entry);

/// `explain --stage scenario`: the resolved scenario as text.
[[nodiscard]] std::string describe(const Scenario& scenario);

}  // namespace ulysim::scenario
