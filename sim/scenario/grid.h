#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/config/document.h"
#include "sim/scenario/library.h"
#include "sim/scenario/scenario.h"

namespace ulysim::scenario {

/// More simulations than this (points times plans) are refused.
inline constexpr std::size_t kMostSimulations = 1'000'000;

/// A key of the scenario and the values that it takes in turn, in the order of the file.
struct Axis {
  std::string key{};  ///< "training.sequence_length", "cluster.network.nic_bandwidth", "plans.0.zero"
  Location key_at{};
  std::vector<config::Node> values{};
  std::vector<std::string> names{};  ///< of the values: their own, a count as digits, or as written
};

/// A sweep: scenarios that differ in the values of a few keys. Its points are all combinations, numbered with the
/// last axis fastest; every point has the same plans.
struct Grid {
  std::string name{};
  config::Node base{};               ///< a scenario's document
  std::filesystem::path folder{};    ///< relative model paths of `base` count from here
  std::vector<Axis> axes{};          ///< at least one, each with at least one value
  std::vector<std::string> plans{};  ///< unique: a plan's `name`, else its keys as written ("ulysses=all,zero=2")

  [[nodiscard]] std::size_t points() const;
  /// The index of every axis' value.
  [[nodiscard]] std::vector<std::size_t> at(std::size_t point) const;
};

/// Reads `{sweep: NAME, base: SCENARIO.yaml or a scenario, axes: {key: values}, plans: [...]}`; `options` lie over the
/// base. Throws InputError with everything that is wrong. A value (or a plan) is wrong when it is so in every one of
/// its combinations; one that only does not go together with some of the others cannot run there.
[[nodiscard]] Grid load_grid(const std::filesystem::path& path, const std::filesystem::path& data,
                             const LoadOptions& options);

/// The study of one plan at one point. InputError when they do not go together.
[[nodiscard]] Scenario scenario_at(const Grid& grid, std::size_t point, std::size_t plan, Library& library);

/// Everything that decides the results, as text: two sweeps with the same text are the same sweep.
[[nodiscard]] std::string fingerprint(const Grid& grid);

}  // namespace ulysim::scenario
