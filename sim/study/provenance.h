#pragma once

#include <vector>

#include "sim/results/study_result.h"
#include "sim/scenario/scenario.h"

namespace ulysim::study {

/// Every catalogue number that enters the simulation of a scenario, with its source.
[[nodiscard]] std::vector<results::Parameter> parameters_of(const scenario::Scenario& scenario);

}  // namespace ulysim::study
