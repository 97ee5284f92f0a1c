#include "reports/result_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/json.h"
#include "reports/plan_reader.h"
#include "reports/sweep_json.h"

namespace ulysim::reports {
namespace {

results::ModelInfo read_model(Fields model) {
  return {.name = model.text("name"),
          .model_type = model.text("model_type"),
          .parameters = model.count("parameters"),
          .active_parameters = model.count("active_parameters"),
          .layers = model.count("layers"),
          .hidden = model.count("hidden"),
          .heads = model.count("heads"),
          .kv_heads = model.count("kv_heads"),
          .head_dim = model.count("head_dim"),
          .ffn = model.count("ffn"),
          .vocab = model.count("vocab"),
          .max_positions = model.count("max_positions"),
          .tied_embeddings = model.truth("tied_embeddings"),
          .attention = model.text("attention"),
          .mlp = model.text("mlp"),
          .ulysses_degrees = model.counts("ulysses_degrees")};
}

results::ScenarioEcho read_scenario(Fields scenario) {
  return {.name = scenario.text("name"),
          .model = scenario.text("model"),
          .node = scenario.text("node"),
          .gpu = scenario.text("gpu"),
          .nodes = scenario.count("nodes"),
          .gpus = scenario.count("gpus"),
          .topology = scenario.text("topology"),
          .sequence_length = scenario.count("sequence_length"),
          .total_tokens = scenario.maybe<std::int64_t>("total_tokens"),
          .price_per_gpu_hour = scenario.maybe<double>("price_per_gpu_hour"),
          .text = scenario.maybe<std::string>("text").value_or(std::string())};
}

results::TopologyPicture read_topology(Fields& study) {
  results::TopologyPicture out;
  if (!study.has("topology")) {
    return out;
  }
  Fields topology = study.object("topology");
  topology.each("vertices", [&](const config::Node& node, const std::string& path) {
    Fields vertex(node, path, study.diagnostics());
    results::TopologyPicture::Vertex& added = out.vertices.emplace_back();
    added.name = vertex.text("name");
    added.kind = vertex.text("kind");
    added.node = vertex.maybe<std::int64_t>("node");
  });
  topology.each("links", [&](const config::Node& node, const std::string& path) {
    Fields link(node, path, study.diagnostics());
    out.links.push_back({.from = link.index("from", out.vertices.size()),
                         .to = link.index("to", out.vertices.size()),
                         .kind = link.text("kind"),
                         .capacity = link.gigabytes_per_second("capacity_gb_s")});
  });
  out.omitted_nodes = topology.count("omitted_nodes");
  return out;
}

SavedResult read_study(Fields& study) {
  results::StudyResult out{.scenario = read_scenario(study.object("scenario")),
                           .model = read_model(study.object("model")),
                           .topology = read_topology(study),
                           .warnings = study.texts("warnings")};
  study.each("plans", [&](const config::Node& node, const std::string& path) {
    Fields plan(node, path, study.diagnostics());
    out.plans.push_back(read_plan(plan, out.topology.links.size()));
  });
  if (out.plans.empty()) {
    study.error("plans", "at least one plan is needed");
  }
  const auto longest = std::count_if(out.plans.begin(), out.plans.end(), [](const auto& p) { return p.longest; });
  if (longest != 0 && static_cast<std::size_t>(longest) != out.plans.size()) {
    study.error("plans", "some plans have a longest sequence and some have none");
  }
  study.each("parameters", [&](const config::Node& node, const std::string& path) {
    Fields parameter(node, path, study.diagnostics());
    out.parameters.push_back({.name = parameter.text("name"),
                              .value = parameter.text("value"),
                              .source = parameter.text("source"),
                              .kind = parameter.text("kind"),
                              .spread = parameter.maybe<double>("spread")});
  });
  return out;
}

SavedResult read_validation(Fields& validation) {
  results::ValidationResult out;
  validation.each("summary", [&](const config::Node& node, const std::string& path) {
    Fields s(node, path, validation.diagnostics());
    out.summary.push_back({.metric = s.text("metric"),
                           .rows = s.count("rows"),
                           .skipped = s.count("skipped"),
                           .outcomes = s.count("outcomes"),
                           .wrong_outcomes = s.count("wrong_outcomes"),
                           .median_error = s.number("median_error"),
                           .p90_error = s.number("p90_error"),
                           .worst_error = s.number("worst_error"),
                           .median_ratio = s.number("median_ratio")});
  });
  validation.each("rows", [&](const config::Node& node, const std::string& path) {
    Fields row(node, path, validation.diagnostics());
    out.rows.push_back({.source = row.text("source"),
                        .id = row.text("id"),
                        .metric = row.text("metric"),
                        .measured = row.number("measured"),
                        .predicted = row.maybe<double>("predicted"),
                        .low = row.maybe<double>("low"),
                        .high = row.maybe<double>("high"),
                        .note = row.text("note")});
  });
  return out;
}

SavedResult read_fit(Fields& fit) {
  results::FitResult out{.name = fit.maybe<std::string>("name").value_or(std::string())};
  fit.each("parameters", [&](const config::Node& node, const std::string& path) {
    Fields p(node, path, fit.diagnostics());
    out.parameters.push_back({.name = p.text("name"),
                              .value = p.number("value"),
                              .unit = p.text("unit"),
                              .source = p.text("source"),
                              .kind = p.text("kind"),
                              .spread = p.maybe<double>("spread")});
  });
  fit.each("covariances", [&](const config::Node& node, const std::string& path) {
    Fields c(node, path, fit.diagnostics());
    out.covariances.push_back({.part = c.text("part"),
                               .parameters = c.texts("parameters"),
                               .values = c.numbers("values"),
                               .matrix = c.numbers("covariance")});
  });
  fit.each("groups", [&](const config::Node& node, const std::string& path) {
    Fields g(node, path, fit.diagnostics());
    out.groups.push_back({.name = g.text("name"),
                          .points = g.count("points"),
                          .median_error = g.number("median_error"),
                          .p90_error = g.number("p90_error"),
                          .worst_error = g.number("worst_error"),
                          .cross_validated_median = g.maybe<double>("cross_validated_median"),
                          .cross_validated_p90 = g.maybe<double>("cross_validated_p90")});
  });
  fit.each("residuals", [&](const config::Node& node, const std::string& path) {
    Fields r(node, path, fit.diagnostics());
    out.residuals.push_back({.group = r.text("group"),
                             .label = r.text("label"),
                             .measured = r.number("measured"),
                             .fitted = r.number("fitted"),
                             .cross_validated = r.maybe<double>("cross_validated"),
                             .unit = r.text("unit")});
  });
  return out;
}

/// What every result begins with; throws when this is none that can be read on.
void check_head(Fields& root) {
  const auto format = root.maybe<std::string>("format");
  if (format != "ulysim-result") {
    root.error("format", "this is no result of ulysim: 'format' is not \"ulysim-result\"");
  } else if (const std::int64_t version = root.count("version"); version > kResultVersion) {
    root.error("version", fmt::format("version {} of the format is later than this program, which reads up to {}: "
                                      "use the ulysim that wrote it, or a later one",
                                      version, kResultVersion));
  }
  root.diagnostics().throw_if_any();
}

}  // namespace

SavedResult read_result(const config::Node& root) {
  Diagnostics diagnostics;
  Fields fields(root, "", diagnostics);
  check_head(fields);
  static const std::vector<std::string> kKinds{"study", "validation", "model", "fit", "sweep"};
  const std::size_t kind = fields.word("kind", kKinds);
  diagnostics.throw_if_any();
  SavedResult out = kind == 0   ? read_study(fields)
                    : kind == 1 ? read_validation(fields)
                    : kind == 2 ? SavedResult(read_model(fields))
                    : kind == 3 ? read_fit(fields)
                                : SavedResult(read_sweep(fields));
  diagnostics.throw_if_any();
  return out;
}

Report report_of(const SavedResult& saved) {
  return std::visit([](const auto& result) { return Report(&result); }, saved);
}

}  // namespace ulysim::reports
