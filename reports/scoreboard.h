#pragma once

#include <cstddef>
#include <string>

#include "sim/results/study_result.h"

namespace ulysim::reports {

/// What `validate` prints: errors by metric and by source, every row, and below them what is said of single rows.
[[nodiscard]] std::string scoreboard(const results::ValidationResult& validation, std::size_t width);

}  // namespace ulysim::reports
