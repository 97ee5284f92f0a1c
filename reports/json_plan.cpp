#include <utility>

#include "reports/json.h"

namespace ulysim::reports {
namespace {

using config::Json;
using results::Figures;

Json communication_json(const std::vector<results::CommunicationUse>& uses) {
  Json out = Json::object();
  for (const results::CommunicationUse& use : uses) {
    out[use.name] = Json::object({{"bytes_per_gpu", use.bytes_per_gpu.value()},
                                  {"seconds", seconds(use.time)},
                                  {"exposed_seconds", seconds(use.exposed)}});
  }
  return out;
}

Json bytes_json(const std::vector<results::NamedBytes>& parts) {
  Json out = Json::object();
  for (const results::NamedBytes& part : parts) {
    out[part.name] = json_gib(part.bytes);
  }
  return out;
}

Json breakdown_json(const Figures& f) {
  Json out = Json::object();
  for (const results::NamedDuration& part : f.breakdown) {
    out[part.name] = seconds(part.time);
  }
  return out;
}

Json peak_tensors_json(const Figures& f) {
  Json out = Json::array();
  for (const results::PeakTensor& tensor : f.peak_tensors) {
    out.push_back(Json::object(
        {{"name", tensor.name}, {"kind", tensor.kind}, {"gib", json_gib(tensor.bytes)}, {"count", tensor.count}}));
  }
  return out;
}

Json memory_curve_json(const Figures& f) {
  Json out = Json::array();
  for (const results::MemorySample& sample : f.memory_curve) {
    out.push_back(Json::object({{"time_s", json_seconds(sample.at)}, {"allocated_gib", json_gib(sample.allocated)}}));
  }
  return out;
}

Json links_json(const Figures& f) {
  Json out = Json::array();
  for (const results::LinkLoad& link : f.links) {
    out.push_back(Json::object({{"name", link.name},
                                {"kind", link.kind},
                                {"links", link.links},
                                {"capacity_gb_s", link.capacity / 1e9},
                                {"carried_bytes", link.carried},
                                {"utilization", link.utilization}}));
  }
  return out;
}

/// What only some plans have.
void add_rare(const Figures& f, Json& out) {
  if (f.load_peak) {
    out["load_peak"] = Json::object({{"gpu_memory_gib", json_gib(f.load_peak->gpu)},
                                     {"host_memory_gib_per_node", json_gib(f.load_peak->host_per_node)}});
  }
  if (f.nvme) {
    out["nvme"] = Json::object({{"peak_gib_per_node", json_gib(f.nvme->peak_per_node)},
                                {"capacity_gib_per_node", json_gib(f.nvme->capacity_per_node)}});
  }
  if (f.padding) {
    out["padding"] = Json::object({{"tokens", f.padding->tokens},
                                   {"share_of_tokens", f.padding->share},
                                   {"extra_executed_flops", f.padding->extra_executed}});
  }
  if (f.attention_imbalance) {
    out["attention_imbalance"] = *f.attention_imbalance;
  }
}

/// Every key stands there; all are null when the plan cannot run.
void add_figures(const std::optional<Figures>& figures, Json& out) {
  const auto put = [&](const char* key, auto get) { out[key] = figures ? Json(get(*figures)) : Json(); };
  using F = Figures;
  put("step_time_s", [](const F& f) { return seconds(f.step_time); });
  put("tokens_per_step", [](const F& f) { return f.tokens_per_step; });
  put("tokens_per_s_per_gpu", [](const F& f) { return f.tokens_per_s_per_gpu; });
  put("mfu", [](const F& f) { return f.mfu; });
  put("model_tflops_per_gpu", [](const F& f) { return f.model_tflops_per_gpu; });
  put("hardware_tflops_per_gpu", [](const F& f) { return f.hardware_tflops_per_gpu; });
  put("lower_bound_s", [](const F& f) { return f.lower_bound ? Json(seconds(*f.lower_bound)) : Json(); });
  put("peak_gpu_memory_gib", [](const F& f) { return json_gib(f.peak_gpu_memory); });
  put("peak_gpu_allocated_gib", [](const F& f) { return json_gib(f.peak_gpu_allocated); });
  put("peak_gpu_reserved_gib", [](const F& f) { return json_gib(f.peak_gpu_reserved); });
  put("gpu_memory_capacity_gib", [](const F& f) { return json_gib(f.gpu_memory_capacity); });
  put("peak_host_memory_gib_per_node", [](const F& f) { return json_gib(f.peak_host_memory_per_node); });
  put("host_memory_capacity_gib_per_node", [](const F& f) { return json_gib(f.host_memory_capacity_per_node); });
  put("total_days", [](const F& f) { return f.total_days; });
  put("total_gpu_hours", [](const F& f) { return f.total_gpu_hours; });
  put("total_cost", [](const F& f) { return f.total_cost; });
  if (figures) {
    add_rare(*figures, out);
  }
  put("memory", [](const F& f) { return bytes_json(f.memory); });
  put("communication", [](const F& f) { return communication_json(f.communication); });
  put("communication_by_purpose", [](const F& f) { return communication_json(f.communication_by_purpose); });
  put("breakdown", breakdown_json);
  put("bottleneck", [](const F& f) { return f.bottleneck; });
  put("peak_tensors", peak_tensors_json);
  put("memory_curve", memory_curve_json);
  put("links", links_json);
  // What an older result does not have is not made up.
  put("topology_links", [](const F& f) { return f.picture_links.empty() ? Json() : Json(f.picture_links); });
  put("memory_by_kind", [](const F& f) { return f.memory_by_kind.bytes.empty() ? Json() : memory_by_kind_json(f); });
  put("host_memory", [](const F& f) { return Json::object({{"parts", bytes_json(f.host_memory)}}); });
  put("layer_timeline", [](const F& f) { return f.layer_timeline ? layer_timeline_json(*f.layer_timeline) : Json(); });
  put("gpu_fit", [](const F& f) { return fit_name(f.gpu_fit); });
  put("host_fit", [](const F& f) { return fit_name(f.host_fit); });
  put("nvme_fit", [](const F& f) { return fit_name(f.nvme_fit); });
}

void add_longest(const results::LongestSequence& longest, Json& out) {
  Json lifts = Json::array();
  for (const results::Lift& lift : longest.lifts) {
    lifts.push_back(Json::object({{"option", lift.option},
                                  {"max_sequence_length", lift.max_sequence_length},
                                  {"step_time_s", seconds(lift.step_time)}}));
  }
  out["max_sequence_length"] = longest.tokens;
  out["limit"] = results::name(longest.limit);
  out["next_sequence_length"] = longest.next_tokens;
  out["limit_reasons"] = longest.reasons;
  out["lifts"] = std::move(lifts);
}

void add_reasons(const results::PlanResult& plan, Json& out) {
  std::vector<std::string> reasons;
  std::vector<std::string> suggestions;
  Json details = Json::array();
  for (const Infeasible& why : plan.infeasible) {
    reasons.push_back(why.reason);
    Json numbers = Json::object();
    for (const auto& [name, value] : why.numbers) {
      numbers[name] = value;
    }
    details.push_back(
        Json::object({{"reason", why.reason}, {"numbers", std::move(numbers)}, {"suggestion", why.suggestion}}));
    if (!why.suggestion.empty()) {
      suggestions.push_back(why.suggestion);
    }
  }
  reasons.insert(reasons.end(), plan.does_not_fit.begin(), plan.does_not_fit.end());
  suggestions.insert(suggestions.end(), plan.suggestions.begin(), plan.suggestions.end());
  out["reasons"] = reasons;
  out["infeasible"] = std::move(details);
  out["suggestions"] = suggestions;
}

}  // namespace

const char* fit_name(results::Fit fit) {
  return fit == results::Fit::yes ? "yes" : fit == results::Fit::risky ? "risky" : "no";
}

Json plan_json(const results::PlanResult& plan) {
  Json out = Json::object({{"name", plan.name}});
  if (plan.longest) {
    add_longest(*plan.longest, out);
  }
  out["feasible"] = plan.feasible();
  out["fits"] = plan.feasible() ? Json(plan.fits()) : Json();
  out["fit"] = plan.feasible() ? Json(fit_name(plan.figures->fit())) : Json();
  add_reasons(plan, out);
  out["global_batch"] = plan.global_batch;
  Json options = Json::object();
  for (const auto& [key, value] : plan.options) {
    options[key] = value;
  }
  out["options"] = std::move(options);
  add_figures(plan.figures, out);
  return out;
}

}  // namespace ulysim::reports
