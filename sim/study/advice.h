#pragma once

#include "sim/results/study_result.h"
#include "sim/study/machine.h"

namespace ulysim::study {

/// The fix beside the failure: options not yet on that would make `result` fit, each simulated and told with what it
/// gives, best first; where none does alone, all together and a shorter sequence. Empty for a plan that fits.
[[nodiscard]] std::vector<std::string> advise(const scenario::Scenario& scenario, const Machine& machine,
                                              const scenario::PlanEntry& entry, const results::PlanResult& result);

}  // namespace ulysim::study
