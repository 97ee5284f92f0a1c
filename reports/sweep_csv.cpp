#include "reports/sweep_csv.h"

#include "reports/csv_text.h"

namespace ulysim::reports {
namespace {

using results::SweepPlan;

const char* fit_text(const SweepPlan& plan) {
  if (!plan.figures) {
    return "";
  }
  const results::Fit fit = plan.figures->fit;
  return fit == results::Fit::yes ? "yes" : fit == results::Fit::risky ? "risky" : "no";
}

void add_plan(const SweepPlan& plan, std::vector<std::string>& cells) {
  const auto figure = [&](double results::SweepFigures::*member) {
    cells.push_back(plan.figures ? csv_number((*plan.figures).*member) : "");
  };
  cells.emplace_back(plan.figures ? "true" : "false");
  cells.emplace_back(fit_text(plan));
  figure(&results::SweepFigures::step_time_s);
  figure(&results::SweepFigures::tokens_per_s_per_gpu);
  figure(&results::SweepFigures::mfu);
  figure(&results::SweepFigures::peak_gpu_memory_gib);
  figure(&results::SweepFigures::peak_host_memory_gib_per_node);
  figure(&results::SweepFigures::exposed_communication_s);
  cells.push_back(plan.figures ? csv_text(plan.figures->bottleneck) : "");
  cells.push_back(csv_text(plan.reason));
}

}  // namespace

std::string sweep_csv(const results::SweepResult& sweep) {
  std::vector<std::string> columns{"sweep"};
  for (const results::SweepAxis& axis : sweep.axes) {
    columns.push_back(csv_text(axis.key));
  }
  for (const char* column :
       {"plan", "resolved_plan", "wins", "feasible", "fit", "step_time_s", "tokens_per_s_per_gpu", "mfu",
        "peak_gpu_memory_gib", "peak_host_memory_gib_per_node", "exposed_communication_s", "bottleneck", "reason"}) {
    columns.emplace_back(column);
  }
  std::string out = csv_record(columns);
  for (const results::SweepPoint& point : sweep.points) {
    const auto best = results::winner(point);
    for (std::size_t p = 0; p < point.plans.size(); ++p) {
      std::vector<std::string> cells{csv_text(sweep.name)};
      for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
        cells.push_back(csv_text(sweep.axes[a].values[point.at[a]]));
      }
      cells.push_back(csv_text(sweep.plans[p]));
      cells.push_back(csv_text(point.plans[p].name));
      cells.emplace_back(best == p ? "true" : "false");
      add_plan(point.plans[p], cells);
      out += csv_record(cells);
    }
  }
  return out;
}

}  // namespace ulysim::reports
