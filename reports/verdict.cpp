#include "reports/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/format.h"

namespace ulysim::reports {
namespace {

using results::Figures;
using results::PlanResult;
using results::StudyResult;

/// Closer than this no plan is called faster: predictions are not that sure.
constexpr double kLevel = 1.005;

/// The best of the others that fit.
const PlanResult* runner_up(const StudyResult& study, std::size_t best) {
  const PlanResult* next = nullptr;
  for (std::size_t i = 0; i < study.plans.size(); ++i) {
    const PlanResult& plan = study.plans[i];
    if (i != best && plan.fits() &&
        (next == nullptr || plan.figures->tokens_per_s_per_gpu > next->figures->tokens_per_s_per_gpu)) {
      next = &plan;
    }
  }
  return next;
}

/// Seconds per token of one part, so that plans of different global batches compare.
double per_token(const Figures& figures, const std::string& name) {
  return seconds(part(figures, name)) / std::max(figures.tokens_per_step, 1.0);
}

/// Where the second loses most, in seconds of the winner's step.
std::string reason(const Figures& best, const PlanResult& second) {
  std::string most;
  double saved = 0.0;
  for (const results::NamedDuration& p : second.figures->breakdown) {
    const double gain = (per_token(*second.figures, p.name) - per_token(best, p.name)) * best.tokens_per_step;
    if (gain > saved) {
      saved = gain;
      most = p.name;
    }
  }
  if (most.empty()) {
    return {};
  }
  const Duration time(static_cast<std::int64_t>(std::min(saved, kLongestSeconds) * kPicosecondsPerSecond));
  return fmt::format(", {} less in {}", human(time), in_words(most));
}

std::string figures_text(const PlanResult& plan) {
  return fmt::format("{} a step, {} tokens/s/GPU, MFU {:.1f}%", human(plan.figures->step_time),
                     figure(plan.figures->tokens_per_s_per_gpu), plan.figures->mfu * 100.0);
}

double overfull(const Figures& f) {
  return std::max({f.peak_gpu_memory / f.gpu_memory_capacity,
                   f.host_memory_capacity_per_node.value() > 0
                       ? f.peak_host_memory_per_node / f.host_memory_capacity_per_node
                       : 0.0,
                   f.nvme ? f.nvme->peak_per_node / f.nvme->capacity_per_node : 0.0});
}

std::string nothing_fits(const StudyResult& study) {
  const PlanResult* nearest = nullptr;
  for (const PlanResult& plan : study.plans) {
    if (plan.feasible() && (nearest == nullptr || overfull(*plan.figures) < overfull(*nearest->figures))) {
      nearest = &plan;
    }
  }
  const bool single = study.plans.size() == 1;
  if (nearest == nullptr) {
    const std::string why = study.plans.empty() || study.plans.front().infeasible.empty()
                                ? std::string()
                                : ": " + study.plans.front().infeasible.front().reason;
    return single ? fmt::format("{} cannot run{}", study.plans.front().name, why) : "no plan can run" + why;
  }
  const std::string why = nearest->does_not_fit.empty() ? std::string("does not fit") : nearest->does_not_fit.front();
  return single ? fmt::format("{}: {}", nearest->name, why)
                : fmt::format("no plan fits; {} is nearest: {}", nearest->name, why);
}

}  // namespace

std::string in_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

Duration part(const Figures& figures, std::string_view name) {
  const auto found = std::find_if(figures.breakdown.begin(), figures.breakdown.end(),
                                  [&](const results::NamedDuration& p) { return p.name == name; });
  return found == figures.breakdown.end() ? Duration() : found->time;
}

std::string percent(double fraction) {
  return fmt::format("{:.1f}%", fraction * 100.0);
}

std::string figure(double value) {
  if (value >= 1000.0 && value < 9.0e18) {
    return human_count(std::lround(value));
  }
  return value >= 100.0  ? fmt::format("{:.0f}", value)
         : value >= 10.0 ? fmt::format("{:.1f}", value)
                         : fmt::format("{:.2f}", value);
}

std::string verdict(const StudyResult& study) {
  const auto best = results::winner(study);
  if (!best) {
    return nothing_fits(study);
  }
  const PlanResult& plan = study.plans[*best];
  const bool risky = plan.figures->fit() == results::Fit::risky;
  const char* close = risky ? " (memory is tight)" : "";
  const PlanResult* second = runner_up(study, *best);
  if (second == nullptr) {
    return fmt::format("{} {}: {}{}", plan.name, study.plans.size() == 1 ? "fits" : "is the only plan that fits",
                       figures_text(plan), close);
  }
  const double ratio = plan.figures->tokens_per_s_per_gpu / second->figures->tokens_per_s_per_gpu;
  if (ratio < kLevel) {
    return fmt::format("{} is first: {}{}; {} is level with it (within {:.1f}%)", plan.name, figures_text(plan), close,
                       second->name, (kLevel - 1.0) * 100.0);
  }
  return fmt::format("{} wins: {}{}; {:.2f}× as fast as {}{}", plan.name, figures_text(plan), close, ratio,
                     second->name, reason(*plan.figures, *second));
}

}  // namespace ulysim::reports
