#pragma once

#include <filesystem>
#include <string>

#include "sim/base/diagnostics.h"
#include "sim/config/document.h"
#include "sim/scenario/scenario.h"

namespace ulysim::study {

/// `over` laid over `base`: mappings merge key by key, anything else replaces. Every node keeps its place.
[[nodiscard]] config::Node laid_over(config::Node base, const config::Node& over);

struct RowScenario {
  config::Node fragment{};         ///< model, cluster and training of a scenario
  const config::Node* plan{};      ///< its only plan
  std::string path{};              ///< of the row in messages: "rows[3]"
  Location where{};                ///< of the row
  std::filesystem::path folder{};  ///< relative model paths count from here
};

/// Reads the fragment and the plan as one scenario. Throws InputError with every mistake at its place in the file
/// that the fragment and the plan come from.
[[nodiscard]] scenario::Scenario row_scenario(const RowScenario& row, const std::filesystem::path& data);

}  // namespace ulysim::study
