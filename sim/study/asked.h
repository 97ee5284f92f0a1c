#pragma once

#include <cstdint>

#include "sim/results/study_result.h"
#include "sim/scenario/scenario.h"
#include "sim/study/machine.h"

namespace ulysim::study {

/// A result without plans: what was asked, the model, the machine, and the parameters with their sources.
[[nodiscard]] results::StudyResult study_of(const scenario::Scenario& scenario, const Machine& machine);

/// Whether the model was made for fewer positions than `tokens`. It trains all the same.
[[nodiscard]] bool beyond_positions(const scenario::Scenario& scenario, std::int64_t tokens);

}  // namespace ulysim::study
