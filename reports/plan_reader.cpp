#include "reports/plan_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/json.h"

namespace ulysim::reports {
namespace {

using results::Figures;
using results::Fit;

const std::vector<std::string>& fit_words() {
  static const std::vector<std::string> kWords{fit_name(Fit::yes), fit_name(Fit::risky), fit_name(Fit::no)};
  return kWords;
}

const std::vector<std::string>& limit_words() {
  using results::Limit;
  static const std::vector<std::string> kWords{name(Limit::gpu_memory), name(Limit::host_memory),
                                               name(Limit::nvme),       name(Limit::heads),
                                               name(Limit::plan),       name(Limit::sequence_bound)};
  return kWords;
}

std::vector<results::NamedBytes> read_parts(Fields& fields, std::string_view key) {
  constexpr std::int64_t kMost = std::int64_t{1} << 58;  // far from where a sum would wrap round
  std::vector<results::NamedBytes> out;
  Bytes sum{};
  fields.each_member(key, [&](const std::string& name, const config::Node& value, const std::string& path) {
    out.push_back({.name = name, .bytes = read_gib(value, path, fields.diagnostics())});
    sum = Bytes(std::min(kMost, sum.value() + out.back().bytes.value()));
  });
  if (sum.value() == kMost) {
    fields.error(key, "the parts sum to more than 256 million GiB");
  }
  return out;
}

std::vector<results::CommunicationUse> read_communication(Fields& fields, std::string_view key) {
  std::vector<results::CommunicationUse> out;
  fields.each_member(key, [&](const std::string& name, const config::Node& value, const std::string& path) {
    Fields use(value, path, fields.diagnostics());
    out.push_back({.name = name,
                   .bytes_per_gpu = Bytes(use.count("bytes_per_gpu")),
                   .time = use.seconds("seconds"),
                   .exposed = use.seconds("exposed_seconds")});
  });
  return out;
}

results::LayerPhase read_phase(Fields phase) {
  results::LayerPhase out{
      .begin = phase.instant("begin_s"), .end = phase.instant("end_s"), .omitted_spans = phase.count("omitted_spans")};
  phase.each("streams", [&](const config::Node& node, const std::string& path) {
    Fields stream(node, path, phase.diagnostics());
    const auto index = static_cast<std::uint32_t>(out.streams.size());
    out.streams.push_back(stream.text("name"));
    stream.each("spans", [&](const config::Node& inner, const std::string& where) {
      Fields span(inner, where, phase.diagnostics());
      out.spans.push_back({.name = span.text("name"),
                           .purpose = span.text("purpose"),
                           .stream = index,
                           .begin = span.instant("begin_s"),
                           .end = span.instant("end_s")});
    });
  });
  return out;
}

void read_memory(Fields& fields, Figures& f) {
  f.memory = read_parts(fields, "memory");
  fields.each("peak_tensors", [&](const config::Node& node, const std::string& path) {
    Fields tensor(node, path, fields.diagnostics());
    f.peak_tensors.push_back({.name = tensor.text("name"),
                              .kind = tensor.text("kind"),
                              .bytes = tensor.gib("gib"),
                              .count = tensor.count("count")});
  });
  fields.each("memory_curve", [&](const config::Node& node, const std::string& path) {
    Fields sample(node, path, fields.diagnostics());
    const Instant at = sample.instant("time_s");
    if (at - Instant() > f.step_time || (!f.memory_curve.empty() && at < f.memory_curve.back().at)) {
      sample.error("time_s", "samples ascend, from the begin of the step to its end");
    }
    f.memory_curve.push_back({.at = at, .allocated = sample.gib("allocated_gib")});
  });
  if (fields.has("host_memory")) {
    Fields host = fields.object("host_memory");
    f.host_memory = read_parts(host, "parts");
  }
}

void read_memory_by_kind(Fields& fields, Figures& f) {
  if (!fields.has("memory_by_kind")) {
    return;
  }
  Fields by_kind = fields.object("memory_by_kind");
  f.memory_by_kind.kinds = by_kind.texts("kinds");
  by_kind.each("gib", [&](const config::Node& row, const std::string& path) {
    std::vector<Bytes>& held = f.memory_by_kind.bytes.emplace_back();
    for (const config::Node& item : row.items) {
      held.push_back(read_gib(item, path, fields.diagnostics()));
    }
    if (held.size() != f.memory_by_kind.kinds.size()) {
      fields.diagnostics().error(
          row.where, fmt::format("'{}': {} figures of {} kinds", path, held.size(), f.memory_by_kind.kinds.size()));
    }
  });
  if (f.memory_by_kind.bytes.size() != f.memory_curve.size()) {
    by_kind.error("gib", fmt::format("{} rows of {} samples", f.memory_by_kind.bytes.size(), f.memory_curve.size()));
  }
}

void read_links(Fields& fields, std::size_t drawn_links, Figures& f) {
  fields.each("links", [&](const config::Node& node, const std::string& path) {
    Fields link(node, path, fields.diagnostics());
    f.links.push_back({.name = link.text("name"),
                       .kind = link.text("kind"),
                       .capacity = link.gigabytes_per_second("capacity_gb_s"),
                       .carried = link.number("carried_bytes"),
                       .utilization = link.number("utilization"),
                       .links = link.count("links")});
  });
  fields.each("topology_links", [&](const config::Node& node, const std::string& path) {
    if (node.kind == config::Node::Kind::null) {
      f.picture_links.emplace_back();
      return;
    }
    const auto value = config::read<std::int64_t>(node, path, fields.diagnostics()).value_or(0);
    if (static_cast<std::size_t>(value) >= f.links.size()) {
      fields.diagnostics().error(node.where, fmt::format("'{}': {} is no index of 'links'", path, value));
    }
    f.picture_links.emplace_back(static_cast<std::uint32_t>(value));
  });
  if (fields.has("topology_links") && f.picture_links.size() != drawn_links) {
    fields.error("topology_links",
                 fmt::format("{} entries of {} links of the topology", f.picture_links.size(), drawn_links));
  }
}

/// What only some plans have.
void read_rare(Fields& fields, Figures& f) {
  f.total_days = fields.maybe<double>("total_days");
  f.total_gpu_hours = fields.maybe<double>("total_gpu_hours");
  f.total_cost = fields.maybe<double>("total_cost");
  f.attention_imbalance = fields.maybe<double>("attention_imbalance");
  if (fields.has("load_peak")) {
    Fields load = fields.object("load_peak");
    f.load_peak = {.gpu = load.gib("gpu_memory_gib"), .host_per_node = load.gib("host_memory_gib_per_node")};
  }
  if (fields.has("nvme")) {
    Fields nvme = fields.object("nvme");
    f.nvme = {.peak_per_node = nvme.gib("peak_gib_per_node"), .capacity_per_node = nvme.gib("capacity_gib_per_node")};
  }
  if (fields.has("padding")) {
    Fields padding = fields.object("padding");
    f.padding = {.tokens = padding.number("tokens"),
                 .share = padding.number("share_of_tokens"),
                 .extra_executed = padding.number("extra_executed_flops")};
  }
  if (fields.has("layer_timeline")) {
    Fields layer = fields.object("layer_timeline");
    f.layer_timeline = {.layer = layer.count("layer"),
                        .forward = read_phase(layer.object("forward")),
                        .backward = read_phase(layer.object("backward"))};
  }
}

void read_fits(Fields& fields, Figures& f) {
  const auto read = [&](std::string_view key) { return static_cast<Fit>(fields.word(key, fit_words())); };
  if (!fields.has("gpu_fit")) {
    f.gpu_fit = read("fit");  // which of the three it was earlier versions did not say
    return;
  }
  f.gpu_fit = read("gpu_fit");
  f.host_fit = read("host_fit");
  f.nvme_fit = read("nvme_fit");
}

Figures read_figures(Fields& fields, std::size_t drawn_links) {
  Figures f{.step_time = fields.seconds("step_time_s"),
            .tokens_per_step = fields.number("tokens_per_step"),
            .tokens_per_s_per_gpu = fields.number("tokens_per_s_per_gpu"),
            .mfu = fields.number("mfu"),
            .model_tflops_per_gpu = fields.number("model_tflops_per_gpu"),
            .hardware_tflops_per_gpu = fields.number("hardware_tflops_per_gpu"),
            .lower_bound = fields.maybe_seconds("lower_bound_s"),
            .peak_gpu_memory = fields.gib("peak_gpu_memory_gib"),
            .peak_gpu_allocated = fields.gib("peak_gpu_allocated_gib"),
            .peak_gpu_reserved = fields.gib("peak_gpu_reserved_gib"),
            .gpu_memory_capacity = fields.gib("gpu_memory_capacity_gib"),
            .peak_host_memory_per_node = fields.gib("peak_host_memory_gib_per_node"),
            .host_memory_capacity_per_node = fields.gib("host_memory_capacity_gib_per_node")};
  if (f.gpu_memory_capacity.value() == 0) {
    fields.error("gpu_memory_capacity_gib", "a GPU without memory");
  }
  read_memory(fields, f);
  read_memory_by_kind(fields, f);
  f.communication = read_communication(fields, "communication");
  f.communication_by_purpose = read_communication(fields, "communication_by_purpose");
  fields.each_member("breakdown", [&](const std::string& name, const config::Node& value, const std::string& path) {
    f.breakdown.push_back({.name = name, .time = read_seconds(value, path, fields.diagnostics())});
  });
  f.bottleneck = fields.text("bottleneck");
  read_links(fields, drawn_links, f);
  read_rare(fields, f);
  read_fits(fields, f);
  return f;
}

results::LongestSequence read_longest(Fields& fields) {
  results::LongestSequence out{.tokens = fields.maybe<std::int64_t>("max_sequence_length"),
                               .limit = static_cast<results::Limit>(fields.word("limit", limit_words())),
                               .next_tokens = fields.maybe<std::int64_t>("next_sequence_length"),
                               .reasons = fields.texts("limit_reasons")};
  fields.each("lifts", [&](const config::Node& node, const std::string& path) {
    Fields lift(node, path, fields.diagnostics());
    out.lifts.push_back({.option = lift.text("option"),
                         .max_sequence_length = lift.count("max_sequence_length"),
                         .step_time = lift.seconds("step_time_s")});
  });
  return out;
}

/// `reasons` and `suggestions` begin with those of `infeasible`.
void read_reasons(Fields& fields, results::PlanResult& plan) {
  std::size_t suggested = 0;
  fields.each("infeasible", [&](const config::Node& node, const std::string& path) {
    Fields why(node, path, fields.diagnostics());
    Infeasible& added = plan.infeasible.emplace_back();
    added.reason = why.text("reason");
    why.each_member("numbers", [&](const std::string& name, const config::Node& value, const std::string& where) {
      added.numbers.emplace_back(name, config::read<double>(value, where, fields.diagnostics()).value_or(0.0));
    });
    added.suggestion = why.text("suggestion");
    suggested += added.suggestion.empty() ? 0U : 1U;
  });
  const auto rest = [&](std::string_view key, std::size_t first) {
    std::vector<std::string> all = fields.texts(key);
    if (all.size() < first) {
      fields.error(key, "does not begin with those of 'infeasible'");
      return std::vector<std::string>();
    }
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
    return all;
  };
  plan.does_not_fit = rest("reasons", plan.infeasible.size());
  plan.suggestions = rest("suggestions", suggested);
}

}  // namespace

results::PlanResult read_plan(Fields& plan, std::size_t drawn_links) {
  results::PlanResult out{.name = plan.text("name"), .global_batch = plan.count("global_batch")};
  plan.each_member("options", [&](const std::string& key, const config::Node& value, const std::string& path) {
    out.options.emplace_back(key, config::read<std::string>(value, path, plan.diagnostics()).value_or(std::string()));
  });
  read_reasons(plan, out);
  if (plan.truth("feasible")) {
    out.figures = read_figures(plan, drawn_links);
  }
  if (plan.has("limit")) {
    out.longest = read_longest(plan);
    // A plan that trains has figures at its longest sequence; one that fits somewhere trains there.
    if (out.longest->tokens ? !out.figures.has_value() : out.fits()) {
      plan.error("max_sequence_length", "does not agree with 'feasible' and 'fits'");
    }
  }
  return out;
}

}  // namespace ulysim::reports
