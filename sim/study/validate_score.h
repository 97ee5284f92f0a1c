#pragma once

#include <string>
#include <vector>

#include "sim/results/study_result.h"

namespace ulysim::study {

/// The metric of rows whose source ran out of memory: measured 1, predicted 1 when the plan does not fit, else 0.
inline constexpr const char* kOutOfMemory = "out_of_memory";
/// The metric of rows that are only known to have run: measured 1, predicted 1 when the plan fits, else 0.
inline constexpr const char* kFits = "fits";
[[nodiscard]] bool is_outcome(const results::ValidationRow& row);

/// One summary of `rows` under `name`: median and nearest-rank 90th percentile of |predicted/measured − 1|, its
/// worst, and the median of predicted/measured. All 0 when no row has a prediction. Outcomes are counted, right and
/// wrong, and have no part in the errors: 0 and 1 have no relative error.
[[nodiscard]] results::ValidationSummary summarize(const std::string& name,
                                                   const std::vector<const results::ValidationRow*>& rows);

/// Per metric in order of first appearance, then per source, then "all".
[[nodiscard]] std::vector<results::ValidationSummary> scoreboard(const std::vector<results::ValidationRow>& rows);

}  // namespace ulysim::study
