#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "reports/writer.h"
#include "sim/config/document.h"

namespace ulysim::reports {

/// What a command found, read back from its JSON.
using SavedResult = std::variant<results::StudyResult, results::ValidationResult, results::ModelInfo,
                                 results::FitResult, results::SweepResult>;

/// Reads what the JSON writer wrote: writing it again gives the same bytes. Timelines for Perfetto are not in it.
/// Keys that this version does not know are passed over, and keys that earlier ones did not write may be missing.
/// Throws InputError with what is wrong, each mistake with its place: no result, a later version of the format, a
/// value of another type or out of range, an index that points nowhere. What is let through every writer can print.
[[nodiscard]] SavedResult read_result(const config::Node& root);

/// What writers take; points into `saved`.
[[nodiscard]] Report report_of(const SavedResult& saved);

}  // namespace ulysim::reports
