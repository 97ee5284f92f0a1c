#pragma once

#include <string>

#include "reports/writer.h"
#include "sim/results/study_result.h"

namespace ulysim::reports {

/// Whether the plans were asked for their longest sequences (`maxseq`).
[[nodiscard]] bool is_longest(const results::StudyResult& study);

/// "ulysses=8 trains the longest sequence: 1,105,920 tokens …", or that none trains.
[[nodiscard]] std::string longest_verdict(const results::StudyResult& study);

/// One row a plan.
[[nodiscard]] std::string longest_table(const results::StudyResult& study, const Style& style);

/// What stops each plan, and what would reach further.
[[nodiscard]] std::string limits(const results::StudyResult& study, std::size_t width);

}  // namespace ulysim::reports
