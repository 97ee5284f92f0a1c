#pragma once

#include <string>

#include "sim/results/sweep_result.h"

namespace ulysim::reports {

/// One row a plan at a point; the columns stand in README.md.
[[nodiscard]] std::string sweep_csv(const results::SweepResult& sweep);

}  // namespace ulysim::reports
