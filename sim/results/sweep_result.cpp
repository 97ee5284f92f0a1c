#include "sim/results/sweep_result.h"

namespace ulysim::results {

std::optional<std::size_t> winner(const SweepPoint& point) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < point.plans.size(); ++i) {
    const SweepPlan& plan = point.plans[i];
    if (plan.fits() &&
        (!best || plan.figures->tokens_per_s_per_gpu > point.plans[*best].figures->tokens_per_s_per_gpu)) {
      best = i;
    }
  }
  return best;
}

std::size_t number_of(const std::vector<SweepAxis>& axes, const std::vector<std::size_t>& at) {
  std::size_t number = 0;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    number = number * axes[a].values.size() + at[a];
  }
  return number;
}

}  // namespace ulysim::results
