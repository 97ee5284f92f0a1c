// One format for programs, and for `report`.

#include "reports/json.h"

#include <utility>

#include "reports/factories.h"
#include "reports/sweep_json.h"

namespace ulysim::reports {
namespace {

using config::Json;

Json head(const char* kind) {
  return Json::object({{"format", "ulysim-result"}, {"version", kResultVersion}, {"kind", kind}});
}

/// Of a model's own result, or within a study.
void add_model(const results::ModelInfo& model, Json& out) {
  out["name"] = model.name;
  out["model_type"] = model.model_type;
  out["parameters"] = model.parameters;
  out["active_parameters"] = model.active_parameters;
  out["layers"] = model.layers;
  out["hidden"] = model.hidden;
  out["heads"] = model.heads;
  out["kv_heads"] = model.kv_heads;
  out["head_dim"] = model.head_dim;
  out["ffn"] = model.ffn;
  out["vocab"] = model.vocab;
  out["max_positions"] = model.max_positions;
  out["tied_embeddings"] = model.tied_embeddings;
  out["attention"] = model.attention;
  out["mlp"] = model.mlp;
  out["ulysses_degrees"] = model.ulysses_degrees;
}

Json scenario_json(const results::ScenarioEcho& scenario) {
  return Json::object({{"name", scenario.name},
                       {"model", scenario.model},
                       {"node", scenario.node},
                       {"gpu", scenario.gpu},
                       {"nodes", scenario.nodes},
                       {"gpus", scenario.gpus},
                       {"topology", scenario.topology},
                       {"sequence_length", scenario.sequence_length},
                       {"total_tokens", scenario.total_tokens},
                       {"price_per_gpu_hour", scenario.price_per_gpu_hour},
                       {"text", scenario.text}});
}

Json json_of(const results::StudyResult& study) {
  Json out = head("study");
  out["scenario"] = scenario_json(study.scenario);
  out["model"] = Json::object();
  add_model(study.model, out["model"]);
  out["topology"] = topology_json(study);
  const auto best = results::winner(study);
  out["winner"] = best ? Json(study.plans[*best].name) : Json();
  Json plans = Json::array();
  for (const results::PlanResult& plan : study.plans) {
    plans.push_back(plan_json(plan));
  }
  out["plans"] = std::move(plans);
  out["warnings"] = study.warnings;
  Json parameters = Json::array();
  for (const results::Parameter& p : study.parameters) {
    parameters.push_back(Json::object(
        {{"name", p.name}, {"value", p.value}, {"kind", p.kind}, {"spread", p.spread}, {"source", p.source}}));
  }
  out["parameters"] = std::move(parameters);
  return out;
}

Json json_of(const results::ValidationResult& validation) {
  Json out = head("validation");
  Json summary = Json::array();
  for (const results::ValidationSummary& s : validation.summary) {
    summary.push_back(Json::object({{"metric", s.metric},
                                    {"rows", s.rows},
                                    {"skipped", s.skipped},
                                    {"outcomes", s.outcomes},
                                    {"wrong_outcomes", s.wrong_outcomes},
                                    {"median_error", s.median_error},
                                    {"p90_error", s.p90_error},
                                    {"worst_error", s.worst_error},
                                    {"median_ratio", s.median_ratio}}));
  }
  out["summary"] = std::move(summary);
  Json rows = Json::array();
  for (const results::ValidationRow& row : validation.rows) {
    rows.push_back(Json::object({{"source", row.source},
                                 {"id", row.id},
                                 {"metric", row.metric},
                                 {"measured", row.measured},
                                 {"predicted", row.predicted},
                                 {"low", row.low},
                                 {"high", row.high},
                                 {"note", row.note}}));
  }
  out["rows"] = std::move(rows);
  return out;
}

Json json_of(const results::ModelInfo& model) {
  Json out = head("model");
  add_model(model, out);
  return out;
}

Json json_of(const results::FitResult& fit) {
  Json out = head("fit");
  out["name"] = fit.name;
  Json parameters = Json::array();
  for (const results::FittedParameter& p : fit.parameters) {
    parameters.push_back(Json::object({{"name", p.name},
                                       {"value", p.value},
                                       {"unit", p.unit},
                                       {"source", p.source},
                                       {"kind", p.kind},
                                       {"spread", p.spread}}));
  }
  out["parameters"] = std::move(parameters);
  Json covariances = Json::array();
  for (const results::FitCovariance& c : fit.covariances) {
    covariances.push_back(
        Json::object({{"part", c.part}, {"parameters", c.parameters}, {"values", c.values}, {"covariance", c.matrix}}));
  }
  out["covariances"] = std::move(covariances);
  Json groups = Json::array();
  for (const results::FitGroup& g : fit.groups) {
    groups.push_back(Json::object({{"name", g.name},
                                   {"points", g.points},
                                   {"median_error", g.median_error},
                                   {"p90_error", g.p90_error},
                                   {"worst_error", g.worst_error},
                                   {"cross_validated_median", g.cross_validated_median},
                                   {"cross_validated_p90", g.cross_validated_p90}}));
  }
  out["groups"] = std::move(groups);
  Json residuals = Json::array();
  for (const results::FitResidual& r : fit.residuals) {
    residuals.push_back(Json::object({{"group", r.group},
                                      {"label", r.label},
                                      {"measured", r.measured},
                                      {"fitted", r.fitted},
                                      {"cross_validated", r.cross_validated},
                                      {"unit", r.unit}}));
  }
  out["residuals"] = std::move(residuals);
  return out;
}

template <class Result>
std::string text_of(const Result& result, config::JsonLayout layout) {
  return config::write_json(json_of(result), layout);
}

/// The same in every layout.
std::string text_of(const results::SweepResult& sweep, config::JsonLayout /*layout*/) {
  return sweep_json(sweep);
}

class JsonWriter final : public ReportWriter {
 public:
  [[nodiscard]] std::string name() const override { return "json"; }
  [[nodiscard]] std::string summary() const override { return "every figure, for programs and for 'report'"; }
  [[nodiscard]] std::string file_name() const override { return "result.json"; }
  [[nodiscard]] std::optional<std::string> write(const Report& report, const Style&) const override {
    return json_text(report, config::JsonLayout::indented) + '\n';
  }
};

}  // namespace

std::string json_text(const Report& report, config::JsonLayout layout) {
  return std::visit([&](const auto* value) { return text_of(*value, layout); }, report);
}

const ReportWriter& json_writer() {
  static const JsonWriter writer;
  return writer;
}

}  // namespace ulysim::reports
