#pragma once

#include "sim/study/machine.h"
#include "sim/study/study.h"

namespace ulysim::study {

/// One plan of `maxseq` without its lifts: its figures at the longest length that trains (at the shortest when none
/// does), and what stops it at the next one.
[[nodiscard]] results::PlanResult longest_of(const scenario::Scenario& scenario, const Machine& machine,
                                             const scenario::PlanEntry& entry, const StudyOptions& options);

/// What each option of fixes.h that is not yet on would reach beyond `longest`, and all of them together; longest
/// first, those that reach no further left out.
[[nodiscard]] std::vector<results::Lift> lifts_of(const scenario::Scenario& scenario, const Machine& machine,
                                                  const scenario::PlanEntry& entry,
                                                  const results::LongestSequence& longest);

}  // namespace ulysim::study
