#pragma once

#include "sim/scenario/scenario.h"
#include "sim/workload/training_step.h"

namespace ulysim::study {

/// What the logical graph needs of a plan and its framework profile.
[[nodiscard]] workload::StepOptions step_options(const workload::Transformer& model, const scenario::PlanEntry& entry);

}  // namespace ulysim::study
