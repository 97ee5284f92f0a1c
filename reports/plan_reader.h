#pragma once

#include "reports/fields.h"
#include "sim/results/study_result.h"

namespace ulysim::reports {

/// One of `plans` of a saved study, whose picture of the topology has `drawn_links` links.
[[nodiscard]] results::PlanResult read_plan(Fields& plan, std::size_t drawn_links);

}  // namespace ulysim::reports
