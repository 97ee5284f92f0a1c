#include "reports/sweep_json.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "sim/config/mapping.h"
#include "sim/config/write_json.h"

namespace ulysim::reports {
namespace {

using config::Json;
using results::SweepFigures;
using results::SweepPlan;
using results::SweepPoint;
using results::SweepResult;

const std::vector<std::string>& fit_names() {
  static const std::vector<std::string> names{"yes", "risky", "no"};
  return names;
}

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
  out["fit"] = plan.figures ? Json(fit_names()[static_cast<std::size_t>(plan.figures->fit)]) : Json();
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

SweepPlan read_plan(const config::Node& node, const std::string& path, Diagnostics& diagnostics) {
  config::Mapping map(node, path, diagnostics);
  SweepPlan plan{.name = map.required<std::string>("name"), .reason = map.required<std::string>("reason")};
  map.ignore("fits");
  if (map.required<bool>("feasible")) {
    SweepFigures figures{.fit = static_cast<results::Fit>(map.choice("fit", fit_names(), 0))};
    for (const auto& [key, figure] : kFigures) {
      figures.*figure = map.required<double>(key);
    }
    figures.bottleneck = map.required<std::string>("bottleneck");
    plan.figures = std::move(figures);
  }
  return plan;
}

std::vector<std::string> read_texts(config::Mapping& map, const char* key) {
  std::vector<std::string> texts;
  for (const config::Node* item : map.items(key)) {
    texts.push_back(config::read<std::string>(*item, map.path_of(key), map.diagnostics()).value_or(""));
  }
  return texts;
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
      "{{\n  \"format\": \"ulysim-result\",\n  \"version\": 1,\n  \"kind\": \"sweep\",\n  \"name\": {},\n"
      "  \"axes\": {},\n  \"plans\": {},\n  \"points\": [",
      config::json_string(sweep.name), compact(axes), compact(Json(sweep.plans)));
  for (const SweepPoint& point : sweep.points) {
    out += out.back() == '[' ? "\n    " : ",\n    ";
    out += point_json(point);
  }
  return out + "\n  ]\n}\n";
}

SweepPoint read_point(const config::Node& node, const SweepResult& sweep, Diagnostics& diagnostics) {
  config::Mapping map(node, "", diagnostics);
  map.ignore("winner");
  SweepPoint point;
  for (const config::Node* item : map.items("at")) {
    const auto index = config::read<std::int64_t>(*item, "at", diagnostics);
    const std::size_t axis = point.at.size();
    if (index && axis < sweep.axes.size() && static_cast<std::size_t>(*index) >= sweep.axes[axis].values.size()) {
      map.error("at", fmt::format("{} is beyond the axis", *index));
    }
    point.at.push_back(static_cast<std::size_t>(index.value_or(0)));
  }
  for (const config::Node* item : map.items("plans")) {
    point.plans.push_back(read_plan(*item, "plans", diagnostics));
  }
  if (point.at.size() != sweep.axes.size() || point.plans.size() != sweep.plans.size()) {
    diagnostics.error(node.where,
                      fmt::format("a point of {} axes and {} plans, in a sweep of {} and {}", point.at.size(),
                                  point.plans.size(), sweep.axes.size(), sweep.plans.size()));
  }
  return point;
}

SweepResult read_sweep(const config::Node& root) {
  Diagnostics diagnostics;
  config::Mapping map(root, "", diagnostics);
  SweepResult sweep{.name = map.required<std::string>("name"), .plans = read_texts(map, "plans")};
  for (const config::Node* item : map.items("axes")) {
    config::Mapping axis(*item, "axes", diagnostics);
    sweep.axes.push_back({.key = axis.required<std::string>("key"), .values = read_texts(axis, "values")});
    if (sweep.axes.back().values.empty()) {
      axis.error("values", "an axis has at least one value");
    }
  }
  if (sweep.axes.empty()) {
    map.error("axes", "a sweep has at least one axis");
  }
  for (const config::Node* item : map.items("points")) {
    sweep.points.push_back(read_point(*item, sweep, diagnostics));
  }
  diagnostics.throw_if_any();
  return sweep;
}

}  // namespace ulysim::reports
