#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/results/study_result.h"
#include "sim/scenario/scenario.h"
#include "sim/study/machine.h"
#include "sim/study/study.h"

namespace ulysim::study {

/// A result without plans: what was asked, the model, the machine, and the parameters with their sources.
[[nodiscard]] results::StudyResult study_of(const scenario::Scenario& scenario, const Machine& machine);

/// Whether the model was made for fewer positions than `tokens`. It trains all the same.
[[nodiscard]] bool beyond_positions(const scenario::Scenario& scenario, std::int64_t tokens);

/// Tells who wants to know.
inline void tell(const OnProgress& on_progress, std::size_t done, std::size_t total) {
  if (on_progress) {
    on_progress(done, total);
  }
}

}  // namespace ulysim::study
