#include "sim/results/study_result.h"

#include <utility>

namespace ulysim::results {

namespace {

/// The longest sequence first, where plans were asked for it; then speed.
std::pair<std::int64_t, double> merit(const PlanResult& plan) {
  return {plan.longest ? plan.longest->tokens.value_or(0) : 0, plan.figures->tokens_per_s_per_gpu};
}

}  // namespace

const char* name(Limit limit) {
  switch (limit) {
    case Limit::gpu_memory:
      return "gpu-memory";
    case Limit::host_memory:
      return "host-memory";
    case Limit::nvme:
      return "nvme";
    case Limit::heads:
      return "heads";
    case Limit::plan:
      return "plan";
    case Limit::sequence_bound:
      break;
  }
  return "sequence-bound";
}

std::optional<std::size_t> winner(const StudyResult& study) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < study.plans.size(); ++i) {
    const PlanResult& plan = study.plans[i];
    if (plan.fits() && (!best || merit(plan) > merit(study.plans[*best]))) {
      best = i;
    }
  }
  return best;
}

}  // namespace ulysim::results
