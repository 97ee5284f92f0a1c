#include "reports/sweep_json.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "reports/json.h"
#include "sim/config/write_json.h"

namespace ulysim::reports {
namespace {

using config::Json;
using results::SweepFigures;
using results::SweepPlan;
using results::SweepPoint;
using results::SweepResult;

/// The figures and their keys, once for writing and reading.
constexpr std::array<std::pair<const char*, double SweepFigures::*>, 6> kFigures{
    {{"step_time_s", &SweepFigures::step_time_s},
     {"tokens_per_s_per_gpu", &SweepFigures::tokens_per_s_per_gpu},
     {"mfu", &SweepFigures::mfu},
     {"peak_gpu_memory_gib", &SweepFigures::peak_gpu_memory_gib},
     {"peak_host_memory_gib_per_node", &SweepFigures::peak_host_memory_gib_per_node},
     {"exposed_communication_s", &SweepFigures::exposed_communication_s}}};

Json plan_json(const SweepPlan& plan) {
  Json out = Json::object({{"name", plan.name}, {"feasible", plan.figures.has_value()}});
  out["fits"] = plan.figures ? Json(plan.fits()) : Json();
  out["fit"] = plan.figures ? Json(fit_name(plan.figures->fit)) : Json();
  for (const auto& [key, figure] : kFigures) {
    out[key] = plan.figures ? Json((*plan.figures).*figure) : Json();
  }
  out["bottleneck"] = plan.figures ? Json(plan.figures->bottleneck) : Json();
  out["reason"] = plan.reason;
  return out;
}

std::string compact(const Json& value) {
  return config::write_json(value, config::JsonLayout::compact);
}

const std::vector<std::string>& fit_names() {
  static const std::vector<std::string> names{"yes", "risky", "no"};
  return names;
}

SweepPlan read_plan(Fields fields) {
  SweepPlan plan{.name = fields.text("name"), .reason = fields.text("reason")};
  if (fields.truth("feasible")) {
    SweepFigures figures{.fit = static_cast<results::Fit>(fields.word("fit", fit_names())),
                         .bottleneck = fields.text("bottleneck")};
    for (const auto& [key, figure] : kFigures) {
      figures.*figure = fields.number(key);
    }
    plan.figures = std::move(figures);
  }
  return plan;
}

}  // namespace

std::string point_json(const SweepPoint& point) {
  Json plans = Json::array();
  for (const SweepPlan& plan : point.plans) {
    plans.push_back(plan_json(plan));
  }
  return compact(Json::object({{"at", point.at}, {"winner", results::winner(point)}, {"plans", std::move(plans)}}));
}

std::string sweep_json(const SweepResult& sweep) {
  Json axes = Json::array();
  for (const results::SweepAxis& axis : sweep.axes) {
    axes.push_back(Json::object({{"key", axis.key}, {"values", axis.values}}));
  }
  std::string out = fmt::format(
      "{{\n  \"format\": \"ulysim-result\",\n  \"version\": {},\n  \"kind\": \"sweep\",\n  \"name\": {},\n"
      "  \"axes\": {},\n  \"plans\": {},\n  \"points\": [",
      kResultVersion, config::json_string(sweep.name), compact(axes), compact(Json(sweep.plans)));
  for (const SweepPoint& point : sweep.points) {
    out += out.back() == '[' ? "\n    " : ",\n    ";
    out += point_json(point);
  }
  return out + "\n  ]\n}";
}

SweepPoint read_point(Fields fields, const SweepResult& sweep) {
  SweepPoint point;
  const auto at = fields.counts("at");
  for (std::size_t a = 0; a < at.size() && a < sweep.axes.size(); ++a) {
    if (at[a] < 0 || static_cast<std::size_t>(at[a]) >= sweep.axes[a].values.size()) {
      fields.error("at", fmt::format("{} is beyond the axis '{}'", at[a], sweep.axes[a].key));
    }
    point.at.push_back(static_cast<std::size_t>(at[a]));
  }
  fields.each("plans", [&](const config::Node& node, const std::string& path) {
    point.plans.push_back(read_plan(Fields(node, path, fields.diagnostics())));
  });
  if (at.size() != sweep.axes.size() || point.plans.size() != sweep.plans.size()) {
    fields.error("at", fmt::format("a point of {} axes and {} plans, in a sweep of {} and {}", at.size(),
                                   point.plans.size(), sweep.axes.size(), sweep.plans.size()));
  }
  return point;
}

SweepResult read_sweep(Fields& fields) {
  SweepResult sweep{.name = fields.text("name"), .plans = fields.texts("plans")};
  fields.each("axes", [&](const config::Node& node, const std::string& path) {
    Fields axis(node, path, fields.diagnostics());
    sweep.axes.push_back({.key = axis.text("key"), .values = axis.texts("values")});
    if (sweep.axes.back().values.empty()) {
      axis.error("values", "an axis has at least one value");
    }
  });
  if (sweep.axes.empty() || sweep.plans.empty()) {
    fields.error("axes", "a sweep has at least one axis and one plan");
  }
  fields.each("points", [&](const config::Node& node, const std::string& path) {
    sweep.points.push_back(read_point(Fields(node, path, fields.diagnostics()), sweep));
  });
  return sweep;
}

}  // namespace ulysim::reports
