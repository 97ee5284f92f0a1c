#pragma once

#include <string>

#include "sim/results/study_result.h"

namespace ulysim::reports {

/// How well a fit tells the samples it was made from, group by group, and what was fitted.
[[nodiscard]] std::string fit_table(const results::FitResult& fit, std::size_t width);

}  // namespace ulysim::reports
