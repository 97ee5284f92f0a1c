#pragma once

#include <string>

#include "sim/results/study_result.h"

namespace ulysim::reports {

/// The answer in one sentence: who wins, its time, and where the next one loses; or that nothing fits, and what is
/// nearest.
[[nodiscard]] std::string verdict(const results::StudyResult& study);

/// "exposed communication" for "exposed_communication".
[[nodiscard]] std::string in_words(std::string name);

/// 0 when there is no such part.
[[nodiscard]] Duration part(const results::Figures& figures, std::string_view name);

/// "12.3%" of 0.123.
[[nodiscard]] std::string percent(double fraction);

/// "1,234", "56.7": three significant digits or whole thousands.
[[nodiscard]] std::string figure(double value);

}  // namespace ulysim::reports
