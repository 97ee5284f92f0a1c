#pragma once

#include <string>

#include "reports/writer.h"

namespace ulysim::reports {

/// What `sweep` prints: which plan wins how often, a map of the winners, and where one takes over from another.
[[nodiscard]] std::string sweep_text(const results::SweepResult& sweep, const Style& style);

}  // namespace ulysim::reports
