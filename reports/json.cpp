// One format for programs; `version` grows when a key changes its meaning, never when one is added.

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/factories.h"
#include "reports/sweep_json.h"
#include "sim/base/check.h"

namespace ulysim::reports {
namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double finite(double value) {
  ULYSIM_CHECK(std::isfinite(value), "a result is not finite: {}", value);
  return value;
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

double gib(Bytes bytes) {
  return static_cast<double>(bytes.value()) / kGiB;
}

const char* fit_name(results::Fit fit) {
  return fit == results::Fit::yes ? "yes" : fit == results::Fit::risky ? "risky" : "no";
}

ordered_json head(const char* kind) {
  return {{"format", "ulysim-result"}, {"version", kVersion}, {"kind", kind}};
}

ordered_json model_json(const results::ModelInfo& model) {
  return {{"name", model.name},
          {"model_type", model.model_type},
          {"parameters", model.parameters},
          {"active_parameters", model.active_parameters},
          {"layers", model.layers},
          {"hidden", model.hidden},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"head_dim", model.head_dim},
          {"ffn", model.ffn},
          {"vocab", model.vocab},
          {"max_positions", model.max_positions},
          {"tied_embeddings", model.tied_embeddings},
          {"attention", model.attention},
          {"mlp", model.mlp},
          {"ulysses_degrees", model.ulysses_degrees}};
}

ordered_json scenario_json(const results::ScenarioEcho& scenario) {
  return {{"name", scenario.name},
          {"model", scenario.model},
          {"node", scenario.node},
          {"gpu", scenario.gpu},
          {"nodes", scenario.nodes},
          {"gpus", scenario.gpus},
          {"topology", scenario.topology},
          {"sequence_length", scenario.sequence_length},
          {"total_tokens", or_null(scenario.total_tokens)},
          {"price_per_gpu_hour", or_null(scenario.price_per_gpu_hour)}};
}

ordered_json communication_json(const std::vector<results::CommunicationUse>& uses) {
  ordered_json out = ordered_json::object();
  for (const results::CommunicationUse& use : uses) {
    out[use.name] = {{"bytes_per_gpu", use.bytes_per_gpu.value()},
                     {"seconds", seconds(use.time)},
                     {"exposed_seconds", seconds(use.exposed)}};
  }
  return out;
}

/// Lists that belong to figures: they are null, like the figures, when the plan cannot run.
void add_lists(const results::Figures& f, ordered_json& out) {
  ordered_json memory = ordered_json::object();
  for (const results::NamedBytes& part : f.memory) {
    memory[part.name] = gib(part.bytes);
  }
  ordered_json tensors = ordered_json::array();
  for (const results::PeakTensor& tensor : f.peak_tensors) {
    tensors.push_back(
        {{"name", tensor.name}, {"kind", tensor.kind}, {"gib", gib(tensor.bytes)}, {"count", tensor.count}});
  }
  ordered_json curve = ordered_json::array();
  for (const results::MemorySample& sample : f.memory_curve) {
    curve.push_back({{"time_s", seconds(sample.at - Instant())}, {"allocated_gib", gib(sample.allocated)}});
  }
  ordered_json breakdown = ordered_json::object();
  for (const results::NamedDuration& part : f.breakdown) {
    breakdown[part.name] = seconds(part.time);
  }
  ordered_json links = ordered_json::array();
  for (const results::LinkLoad& link : f.links) {
    links.push_back({{"name", link.name},
                     {"kind", link.kind},
                     {"links", link.links},
                     {"capacity_gb_s", finite(link.capacity / 1e9)},
                     {"carried_bytes", finite(link.carried)},
                     {"utilization", finite(link.utilization)}});
  }
  if (f.load_peak) {
    out["load_peak"] = {{"gpu_memory_gib", gib(f.load_peak->gpu)},
                        {"host_memory_gib_per_node", gib(f.load_peak->host_per_node)}};
  }
  if (f.nvme) {
    out["nvme"] = {{"peak_gib_per_node", gib(f.nvme->peak_per_node)},
                   {"capacity_gib_per_node", gib(f.nvme->capacity_per_node)}};
  }
  if (f.padding) {
    out["padding"] = {{"tokens", finite(f.padding->tokens)},
                      {"share_of_tokens", finite(f.padding->share)},
                      {"extra_executed_flops", finite(f.padding->extra_executed)}};
  }
  if (f.attention_imbalance) {
    out["attention_imbalance"] = finite(*f.attention_imbalance);
  }
  out["memory"] = std::move(memory);
  out["communication"] = communication_json(f.communication);
  out["communication_by_purpose"] = communication_json(f.communication_by_purpose);
  out["breakdown"] = std::move(breakdown);
  out["bottleneck"] = f.bottleneck;
  out["peak_tensors"] = std::move(tensors);
  out["memory_curve"] = std::move(curve);
  out["links"] = std::move(links);
}

void add_figures(const std::optional<results::Figures>& figures, ordered_json& out) {
  const auto put = [&](const char* key, auto get) {
    out[key] = figures ? ordered_json(get(*figures)) : ordered_json(nullptr);
  };
  using F = results::Figures;
  put("step_time_s", [](const F& f) { return seconds(f.step_time); });
  put("tokens_per_step", [](const F& f) { return finite(f.tokens_per_step); });
  put("tokens_per_s_per_gpu", [](const F& f) { return finite(f.tokens_per_s_per_gpu); });
  put("mfu", [](const F& f) { return finite(f.mfu); });
  put("model_tflops_per_gpu", [](const F& f) { return finite(f.model_tflops_per_gpu); });
  put("hardware_tflops_per_gpu", [](const F& f) { return finite(f.hardware_tflops_per_gpu); });
  put("lower_bound_s",
      [](const F& f) { return f.lower_bound ? ordered_json(seconds(*f.lower_bound)) : ordered_json(nullptr); });
  put("peak_gpu_memory_gib", [](const F& f) { return gib(f.peak_gpu_memory); });
  put("peak_gpu_allocated_gib", [](const F& f) { return gib(f.peak_gpu_allocated); });
  put("peak_gpu_reserved_gib", [](const F& f) { return gib(f.peak_gpu_reserved); });
  put("gpu_memory_capacity_gib", [](const F& f) { return gib(f.gpu_memory_capacity); });
  put("peak_host_memory_gib_per_node", [](const F& f) { return gib(f.peak_host_memory_per_node); });
  put("host_memory_capacity_gib_per_node", [](const F& f) { return gib(f.host_memory_capacity_per_node); });
  put("total_days", [](const F& f) { return or_null(f.total_days); });
  put("total_gpu_hours", [](const F& f) { return or_null(f.total_gpu_hours); });
  put("total_cost", [](const F& f) { return or_null(f.total_cost); });
  if (figures) {
    add_lists(*figures, out);
    return;
  }
  for (const char* key : {"memory", "communication", "communication_by_purpose", "breakdown", "bottleneck",
                          "peak_tensors", "memory_curve", "links"}) {
    out[key] = nullptr;
  }
}

void add_longest(const results::LongestSequence& longest, ordered_json& out) {
  ordered_json lifts = ordered_json::array();
  for (const results::Lift& lift : longest.lifts) {
    lifts.push_back({{"option", lift.option},
                     {"max_sequence_length", lift.max_sequence_length},
                     {"step_time_s", seconds(lift.step_time)}});
  }
  out["max_sequence_length"] = or_null(longest.tokens);
  out["limit"] = results::name(longest.limit);
  out["next_sequence_length"] = or_null(longest.next_tokens);
  out["limit_reasons"] = longest.reasons;
  out["lifts"] = std::move(lifts);
}

ordered_json plan_json(const results::PlanResult& plan) {
  ordered_json reasons = ordered_json::array();
  ordered_json details = ordered_json::array();
  ordered_json suggestions = ordered_json::array();
  for (const Infeasible& why : plan.infeasible) {
    reasons.push_back(why.reason);
    ordered_json numbers = ordered_json::object();
    for (const auto& [name, value] : why.numbers) {
      numbers[name] = finite(value);
    }
    details.push_back({{"reason", why.reason}, {"numbers", std::move(numbers)}, {"suggestion", why.suggestion}});
    if (!why.suggestion.empty()) {
      suggestions.push_back(why.suggestion);
    }
  }
  for (const std::string& why : plan.does_not_fit) {
    reasons.push_back(why);
  }
  for (const std::string& fix : plan.suggestions) {
    suggestions.push_back(fix);
  }
  ordered_json options = ordered_json::object();
  for (const auto& [key, value] : plan.options) {
    options[key] = value;
  }
  ordered_json out{{"name", plan.name}};
  if (plan.longest) {
    add_longest(*plan.longest, out);
  }
  out["feasible"] = plan.feasible();
  out["fits"] = plan.feasible() ? ordered_json(plan.fits()) : ordered_json(nullptr);
  out["fit"] = plan.feasible() ? ordered_json(fit_name(plan.figures->fit())) : ordered_json(nullptr);
  out["reasons"] = std::move(reasons);
  out["infeasible"] = std::move(details);
  out["suggestions"] = std::move(suggestions);
  out["global_batch"] = plan.global_batch;
  out["options"] = std::move(options);
  add_figures(plan.figures, out);
  return out;
}

ordered_json to_json(const results::StudyResult& study) {
  ordered_json out = head("study");
  out["scenario"] = scenario_json(study.scenario);
  out["model"] = model_json(study.model);
  const auto best = results::winner(study);
  out["winner"] = best ? ordered_json(study.plans[*best].name) : ordered_json(nullptr);
  out["plans"] = ordered_json::array();
  for (const results::PlanResult& plan : study.plans) {
    out["plans"].push_back(plan_json(plan));
  }
  out["warnings"] = study.warnings;
  out["parameters"] = ordered_json::array();
  for (const results::Parameter& p : study.parameters) {
    out["parameters"].push_back(
        {{"name", p.name}, {"value", p.value}, {"kind", p.kind}, {"spread", or_null(p.spread)}, {"source", p.source}});
  }
  return out;
}

ordered_json to_json(const results::ValidationResult& validation) {
  ordered_json out = head("validation");
  out["summary"] = ordered_json::array();
  for (const results::ValidationSummary& s : validation.summary) {
    out["summary"].push_back({{"metric", s.metric},
                              {"rows", s.rows},
                              {"skipped", s.skipped},
                              {"outcomes", s.outcomes},
                              {"wrong_outcomes", s.wrong_outcomes},
                              {"median_error", finite(s.median_error)},
                              {"p90_error", finite(s.p90_error)},
                              {"worst_error", finite(s.worst_error)},
                              {"median_ratio", finite(s.median_ratio)}});
  }
  out["rows"] = ordered_json::array();
  for (const results::ValidationRow& row : validation.rows) {
    out["rows"].push_back({{"source", row.source},
                           {"id", row.id},
                           {"metric", row.metric},
                           {"measured", finite(row.measured)},
                           {"predicted", or_null(row.predicted)},
                           {"low", or_null(row.low)},
                           {"high", or_null(row.high)},
                           {"note", row.note}});
  }
  return out;
}

ordered_json to_json(const results::ModelInfo& model) {
  ordered_json out = head("model");
  out.update(model_json(model));
  return out;
}

template <class Result>
std::string text_of(const Result& result) {
  // Names were checked as UTF-8 when they were read; `replace` keeps a slip there from losing the whole result.
  return to_json(result).dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

std::string text_of(const results::SweepResult& sweep) {
  return sweep_json(sweep);
}

class JsonWriter final : public ReportWriter {
 public:
  [[nodiscard]] std::string name() const override { return "json"; }
  [[nodiscard]] std::string summary() const override { return "every figure, for programs and for 'report'"; }
  [[nodiscard]] std::string file_name() const override { return "result.json"; }
  [[nodiscard]] std::optional<std::string> write(const Report& report, const Style&) const override {
    return std::visit([](const auto* value) { return text_of(*value); }, report);
  }
};

}  // namespace

const ReportWriter& json_writer() {
  static const JsonWriter writer;
  return writer;
}

}  // namespace ulysim::reports
