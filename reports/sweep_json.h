#pragma once

#include <string>

#include "reports/fields.h"
#include "sim/config/document.h"
#include "sim/results/sweep_result.h"

namespace ulysim::reports {

/// A sweep as JSON, one point a line. Without a newline at its end.
[[nodiscard]] std::string sweep_json(const results::SweepResult& sweep);

/// One point as it stands there: one line without its newline, which `read_point` reads back to the same.
[[nodiscard]] std::string point_json(const results::SweepPoint& point);

// Mistakes go to the collector of the fields.

/// A point of a sweep with these axes and so many plans.
[[nodiscard]] results::SweepPoint read_point(Fields fields, const results::SweepResult& sweep);
/// What `sweep_json` wrote.
[[nodiscard]] results::SweepResult read_sweep(Fields& fields);

}  // namespace ulysim::reports
