#include "sim/results/study_result.h"

namespace ulysim::results {

std::optional<std::size_t> winner(const StudyResult& study) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < study.plans.size(); ++i) {
    const PlanResult& plan = study.plans[i];
    if (plan.fits() &&
        (!best || plan.figures->tokens_per_s_per_gpu > study.plans[*best].figures->tokens_per_s_per_gpu)) {
      best = i;
    }
  }
  return best;
}

}  // namespace ulysim::results
