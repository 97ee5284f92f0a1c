#include "sim/study/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/study/simulate.h"

namespace ulysim::study {
namespace {

using results::SweepPlan;
using results::SweepPoint;

results::SweepFigures figures_of(const results::Figures& f) {
  const auto exposed = std::find_if(f.breakdown.begin(), f.breakdown.end(),
                                    [](const auto& part) { return part.name == "exposed_communication"; });
  return {.fit = f.fit(),
          .step_time_s = seconds(f.step_time),
          .tokens_per_s_per_gpu = f.tokens_per_s_per_gpu,
          .mfu = f.mfu,
          .peak_gpu_memory_gib = gibibytes(f.peak_gpu_memory),
          .peak_host_memory_gib_per_node = gibibytes(f.peak_host_memory_per_node),
          .exposed_communication_s = exposed == f.breakdown.end() ? 0.0 : seconds(exposed->time),
          .bottleneck = f.bottleneck};
}

SweepPlan simulate_plan(const scenario::Grid& grid, std::size_t point, std::size_t plan, scenario::Library& library) {
  SweepPlan out{.name = grid.plans[plan]};
  try {
    const scenario::Scenario scenario = scenario::scenario_at(grid, point, plan, library);
    const scenario::PlanEntry& entry = scenario.plans.front();
    out.name = entry.plan.name;
    const results::PlanResult result = simulate(scenario, build_machine(scenario), entry, {.detail = Detail::numbers});
    std::vector<std::string> reasons = result.does_not_fit;
    for (const Infeasible& why : result.infeasible) {
      reasons.push_back(why.reason);
    }
    out.reason = fmt::format("{}", fmt::join(reasons, "; "));
    if (result.figures) {
      out.figures = figures_of(*result.figures);
    }
  } catch (const InputError& error) {
    // What is wrong wherever it stands was refused before the first point: here keys only do not go together.
    out.reason = error.diagnostics().front().message;
  } catch (const RangeError& error) {
    out.reason = error.what();
  }
  return out;
}

/// The first exception of several threads.
class FirstFailure {
 public:
  void keep(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) {
      failure_ = std::move(failure);
    }
    any_ = true;
  }
  [[nodiscard]] bool any() const { return any_; }
  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::atomic<bool> any_{false};
};

}  // namespace

SweepPoint simulate_point(const scenario::Grid& grid, std::size_t point, scenario::Library& library) {
  SweepPoint out{.at = grid.at(point)};
  for (std::size_t plan = 0; plan < grid.plans.size(); ++plan) {
    out.plans.push_back(simulate_plan(grid, point, plan, library));
  }
  return out;
}

void sweep(const scenario::Grid& grid, std::span<const std::size_t> points, const SweepOptions& options,
           const OnPoint& on_point) {
  std::atomic<std::size_t> next{0};
  std::mutex telling;
  FirstFailure failure;
  const auto work = [&] {
    try {
      scenario::Library library(options.data);
      while (!options.stop.stop_requested() && !failure.any()) {
        const std::size_t mine = next++;
        if (mine >= points.size()) {
          return;
        }
        SweepPoint point = simulate_point(grid, points[mine], library);
        const std::lock_guard lock(telling);
        on_point(std::move(point));
      }
    } catch (...) {
      failure.keep(std::current_exception());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(options.jobs, points.size()); ++i) {
      threads.emplace_back(work);
    }
  }
  failure.rethrow();
}

}  // namespace ulysim::study
