#pragma once

#include <string>

#include "sim/base/diagnostics.h"
#include "sim/config/document.h"
#include "sim/results/sweep_result.h"

namespace ulysim::reports {

/// A sweep as JSON, one point a line.
[[nodiscard]] std::string sweep_json(const results::SweepResult& sweep);

/// One point as it stands there: one line without its newline, which `read_point` reads back to the same.
[[nodiscard]] std::string point_json(const results::SweepPoint& point);

/// A point of a sweep with these axes and so many plans. What is wrong goes to `diagnostics`.
[[nodiscard]] results::SweepPoint read_point(const config::Node& node, const results::SweepResult& sweep,
                                             Diagnostics& diagnostics);

/// What `sweep_json` wrote. Throws InputError.
[[nodiscard]] results::SweepResult read_sweep(const config::Node& root);

}  // namespace ulysim::reports
