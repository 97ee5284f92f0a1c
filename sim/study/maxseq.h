#pragma once

#include "sim/study/machine.h"
#include "sim/study/study.h"

namespace ulysim::study {

/// One plan of `maxseq`: its figures at the longest length that trains (at the shortest when none does), what stops
/// it at the next one, and what each option of fixes.h that is not yet on would give.
[[nodiscard]] results::PlanResult longest_of(const scenario::Scenario& scenario, const Machine& machine,
                                             const scenario::PlanEntry& entry, const StudyOptions& options);

}  // namespace ulysim::study
