#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "sim/config/document.h"
#include "sim/scenario/library.h"
#include "sim/scenario/scenario.h"

namespace ulysim::scenario {

/// Where a document comes from.
struct Source {
  std::filesystem::path folder{};          ///< relative model paths count from here
  std::string fallback_name{};             ///< of a study that does not name itself
  std::optional<std::size_t> only_plan{};  ///< read no other of the plans
};

/// A document that was read already. Throws InputError with everything that is wrong, each with its place.
[[nodiscard]] Scenario read_scenario(const config::Node& document, const Source& source, Library& library);

}  // namespace ulysim::scenario
