#include "sim/study/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw_models/cost/roofline.h"
#include "sim/base/format.h"
#include "sim/engine/engine.h"
#include "sim/memory/accountant.h"
#include "sim/strategies/strategy.h"
#include "sim/study/breakdown.h"
#include "sim/study/communication.h"
#include "sim/study/layer_timeline.h"
#include "sim/study/memory_figures.h"
#include "sim/study/step_options.h"
#include "sim/study/trace.h"
#include "sim/workload/shape.h"
#include "sim/workload/training_step.h"

namespace ulysim::study {

namespace {

using workload::Purpose;

strategies::PlanContext context_of(const scenario::Scenario& scenario, const scenario::PlanEntry& entry) {
  return {.model = &scenario.model, .framework = &entry.framework, .plan = &entry.plan};
}

struct Books {
  const results::RankTimeline* rank{};
  memory::MemoryResult memory{};
};
/// Those of the rank class that peaks highest.
Books highest_books(const Stages& stages) {
  Books highest;
  for (const results::RankTimeline& rank : stages.timeline.ranks) {
    memory::MemoryResult books = memory::account(stages.parallel, stages.schedule_of(rank), rank);
    if (highest.rank == nullptr || books.gpu.peak > highest.memory.gpu.peak) {
      highest = {.rank = &rank, .memory = std::move(books)};
    }
  }
  return highest;
}

std::string percent(Duration part, Duration whole) {
  return fmt::format("{:.0f}% of the step", whole.value() > 0 ? part / whole * 100.0 : 0.0);
}

/// What binds, in words.
std::string bottleneck_of(const strategies::Plan& plan, const Breakdown& breakdown, Duration step) {
  const auto largest = std::max_element(breakdown.parts.begin(), breakdown.parts.end(),
                                        [](const auto& a, const auto& b) { return a.time < b.time; });
  const std::int64_t stages = plan.mesh.size(workload::MeshAxis::pipeline);
  if (largest->name == "bubble" && stages > 1) {
    // (p−1)/(v·m) of the ideal time: arXiv 2104.04473 §2.2.
    return fmt::format(
        "the pipeline's bubble ({}): {} micro-batches in {} stages{}; more gradient_accumulation or {} "
        "shorten it",
        percent(largest->time, step), plan.accumulation, stages,
        plan.virtual_stages > 1 ? fmt::format(" of {} parts each", plan.virtual_stages) : "",
        plan.virtual_stages > 1 ? "more virtual_stages" : "virtual_stages");
  }
  if (largest->name != "exposed_communication") {
    constexpr std::array<std::pair<const char*, const char*>, 8> kWords{
        {{"attention", "attention kernels"},
         {"gemm", "matrix products"},
         {"memory_bound", "memory-bound kernels"},
         {"host_issue", "the host issuing kernels"},
         {"exposed_offload", "copies to and from the host"},
         {"optimizer", "the optimizer"},
         {"bubble", "waiting for other ranks"},
         {"other", "waiting"}}};
    for (const auto& [part, words] : kWords) {
      if (largest->name == part) {
        return fmt::format("{} ({})", words, percent(largest->time, step));
      }
    }
  }
  std::size_t most = 0;
  for (std::size_t p = 0; p < workload::kPurposes; ++p) {
    most = breakdown.exposed_by_purpose.at(p) > breakdown.exposed_by_purpose.at(most) ? p : most;
  }
  return fmt::format("exposed communication, most of it {} ({})", name(static_cast<Purpose>(most)),
                     percent(largest->time, step));
}

void set_totals(const scenario::Scenario& scenario, const scenario::PlanEntry& entry, results::Figures& figures) {
  const std::optional<std::int64_t> tokens = entry.total_tokens ? entry.total_tokens : scenario.total_tokens;
  if (!tokens) {
    return;
  }
  const auto gpus = static_cast<double>(scenario.cluster.gpus);
  const double hours = static_cast<double>(*tokens) / (figures.tokens_per_s_per_gpu * gpus) / 3600.0;
  figures.total_days = hours / 24.0;
  figures.total_gpu_hours = hours * gpus;
  if (scenario.price_per_gpu_hour) {
    figures.total_cost = hours * gpus * *scenario.price_per_gpu_hour;
  }
}

std::vector<results::LinkLoad> link_loads(const results::Timeline& timeline) {
  std::vector<results::LinkLoad> loads;
  const double time = seconds(timeline.end - Instant{});
  for (const results::LinkUse& link : timeline.links) {
    loads.push_back({.name = link.name,
                     .kind = link.kind,
                     .capacity = link.capacity,
                     .carried = link.carried,
                     .utilization = time > 0 ? link.carried / (link.capacity * time) : 0.0,
                     .links = static_cast<std::int64_t>(link.members.size())});
  }
  return loads;
}

/// FLOPs of the logical graph of what is trained on: padding is work of no model.
struct TrainedFlops {
  double model{};
  double executed{};
};
TrainedFlops trained_flops(const scenario::Scenario& scenario, const scenario::PlanEntry& entry,
                           const workload::OpGraph& logical) {
  if (entry.plan.lengths.empty()) {
    return {.model = workload::model_flops(logical).value(), .executed = workload::executed_flops(logical).value()};
  }
  TrainedFlops sum;
  for (const strategies::Unpadded& part : strategies::unpadded(entry.plan)) {
    scenario::PlanEntry alone = entry;
    alone.plan = part.plan;
    const workload::OpGraph graph = workload::build_training_step(scenario.model, step_options(scenario.model, alone));
    sum.model += static_cast<double>(part.times) * workload::model_flops(graph).value();
    sum.executed += static_cast<double>(part.times) * workload::executed_flops(graph).value();
  }
  return sum;
}

void set_sequence_costs(const scenario::PlanEntry& entry, const Stages& stages, const TrainedFlops& trained,
                        results::Figures& figures) {
  const strategies::Plan& plan = entry.plan;
  if (!plan.lengths.empty()) {
    const double worked = static_cast<double>(plan.global_batch()) * static_cast<double>(plan.sequence_length);
    figures.padding = {.tokens = worked - plan.trained_tokens(),
                       .share = 1.0 - plan.trained_tokens() / worked,
                       .extra_executed = workload::executed_flops(stages.logical).value() / trained.executed - 1.0};
  }
  if (plan.documents) {
    figures.attention_imbalance = workload::attention_imbalance(stages.parallel);
  }
}

results::Figures figures_of(const scenario::Scenario& scenario, const Machine& machine,
                            const scenario::PlanEntry& entry, const Stages& stages, const StudyOptions& options) {
  const Duration step = stages.timeline.end - Instant{};
  if (options.detail == Detail::memory) {
    results::Figures figures{.step_time = step};
    set_memory(scenario, entry, stages.parallel, highest_books(stages).memory, figures);
    return figures;
  }
  const auto gpus = static_cast<double>(scenario.cluster.gpus);
  const double time = std::max(seconds(step), 1e-12);
  const results::RankTimeline& last = last_rank(stages.schedules, stages.timeline);
  Breakdown breakdown = break_down(stages.schedule_of(last), last, stages.timeline.end);
  Communication communication = communication_of(stages.parallel, stages.schedules, last, breakdown);
  const TrainedFlops trained = trained_flops(scenario, entry, stages.logical);
  const double model_flops = trained.model;
  const double executed_flops = workload::executed_flops(stages.parallel).value();
  const double tokens = entry.plan.trained_tokens();
  results::Figures figures{
      .step_time = step,
      .tokens_per_step = tokens,
      .tokens_per_s_per_gpu = tokens / time / gpus,
      // Of the bf16 peak whatever the products' precision, as stacks that train in fp8 report it.
      .mfu = model_flops / time / gpus / scenario.cluster.gpu.bf16.value.value(),
      .model_tflops_per_gpu = model_flops / time / gpus / 1e12,
      .hardware_tflops_per_gpu = executed_flops / time / gpus / 1e12,
      .lower_bound = estimate(stages.parallel, *machine.cost),
      .communication = std::move(communication.by_kind),
      .communication_by_purpose = std::move(communication.by_purpose),
      .bottleneck = bottleneck_of(entry.plan, breakdown, step),
      .links = link_loads(stages.timeline),
  };
  figures.breakdown = std::move(breakdown.parts);
  const Books books = highest_books(stages);
  set_memory(scenario, entry, stages.parallel, books.memory, figures);
  set_totals(scenario, entry, figures);
  set_sequence_costs(entry, stages, trained, figures);
  if (options.detail == Detail::numbers) {
    return figures;
  }
  figures.picture_links = classes_of(machine.drawing, stages.timeline);
  figures.layer_timeline = layer_timeline_of(stages.parallel, stages.schedule_of(last), last);
  set_memory_by_kind(stages.parallel, stages.schedule_of(*books.rank), *books.rank, figures);
  if (options.detail == Detail::trace) {
    figures.trace = trace_of(stages.parallel, stages.schedules, stages.timeline);
  }
  return figures;
}

/// The largest things on the device, until they explain what is too much.
std::string largest_terms(const results::Figures& figures) {
  std::vector<results::NamedBytes> terms = figures.memory;
  std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::string text;
  for (std::size_t i = 0; i < terms.size() && i < 3; ++i) {
    std::string words = terms[i].name;
    std::replace(words.begin(), words.end(), '_', ' ');
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words, human(terms[i].bytes));
  }
  return text;
}

void explain_fit(results::PlanResult& plan) {
  const results::Figures& f = *plan.figures;
  const auto sentence = [&](results::Fit fit, const std::string& where, Bytes peak, Bytes capacity) {
    if (fit == results::Fit::no) {
      plan.does_not_fit.push_back(
          fmt::format("does not fit: {:.1f} of {:.1f} GiB{}", gibibytes(peak), gibibytes(capacity), where));
    } else if (fit == results::Fit::risky) {
      plan.does_not_fit.push_back(
          fmt::format("risky: {:.1f} of {:.1f} GiB{}", gibibytes(peak), gibibytes(capacity), where));
    }
  };
  sentence(f.gpu_fit, "; " + largest_terms(f), f.peak_gpu_memory, f.gpu_memory_capacity);
  sentence(f.host_fit, " of host memory a node", f.peak_host_memory_per_node, f.host_memory_capacity_per_node);
  if (f.nvme) {
    sentence(f.nvme_fit, " on the drives of a node", f.nvme->peak_per_node, f.nvme->capacity_per_node);
  }
}

/// The kernels of one run of a body, undisturbed.
Duration kernel_time(const workload::OpGraph& graph, const workload::BlockTemplate& block, workload::Phase phase,
                     std::int64_t ring, const cost::CostModel& cost) {
  const workload::Body& body = block.body(phase);
  Duration sum{};
  for (const workload::Op& op : body.ops) {
    const bool compute = std::holds_alternative<workload::GemmWork>(op.work) ||
                         std::holds_alternative<workload::AttentionWork>(op.work) ||
                         std::holds_alternative<workload::ElementwiseWork>(op.work);
    // Kernels on a side stream run beside the others: they bound nothing.
    const bool beside = op.stream != workload::Stream::compute;
    if (!compute || beside || op.when != workload::When::every_micro_batch) {
      continue;
    }
    const kernel::Kernel kernel = workload::kernel_of(graph, block, body, op, {.ring = ring});
    const auto* attention = std::get_if<kernel::Attention>(&kernel);
    const bool empty = attention != nullptr && attention->pairs == 0;
    const auto* moved = std::get_if<kernel::MemoryBound>(&kernel);
    if (empty || (moved != nullptr && moved->traffic.value() == 0)) {
      continue;
    }
    sum += cost.time(kernel) * workload::runs_of(body, op);
  }
  return sum;
}

}  // namespace

std::vector<Infeasible> check(const scenario::Scenario& scenario, const scenario::PlanEntry& entry) {
  std::vector<Infeasible> reasons = strategies::check(context_of(scenario, entry));
  const kernel::Precision precision = entry.plan.gemm_precision;
  if (!cost::has_rate(scenario.cluster.gpu, precision)) {
    reasons.push_back({fmt::format("{} has no {} matrix units", scenario.cluster.gpu.name, kernel::name(precision)),
                       {},
                       "gemm_precision: bf16"});
  }
  if (precision != kernel::Precision::bf16 && entry.framework.quantise_traffic.value == 0) {
    reasons.push_back(
        {fmt::format("no recipe of {} for {} products is known", entry.framework.name, kernel::name(precision)),
         {},
         "gemm_precision: bf16, or framework: megatron-core, nemo, torchtitan"});
  }
  if (entry.plan.uses_nvme() && !scenario.cluster.node.nvme) {
    reasons.push_back({fmt::format("nvme: the catalogue knows no drives of node {}", scenario.cluster.node.name),
                       {},
                       "cpu instead of nvme, or a node that has drives"});
  }
  return reasons;
}

std::unique_ptr<Stages> run_stages(const scenario::Scenario& scenario, const Machine& machine,
                                   const scenario::PlanEntry& entry, Stage stage, Detail detail) {
  auto stages = std::make_unique<Stages>();
  stages->logical = workload::build_training_step(scenario.model, step_options(scenario.model, entry));
  if (stage == Stage::logical) {
    return stages;
  }
  stages->parallel = strategies::parallelize(context_of(scenario, entry), stages->logical);
  if (stage == Stage::parallel) {
    return stages;
  }
  for (std::size_t role = 0; role < stages->parallel.roles.size(); ++role) {
    stages->schedules.push_back(workload::unroll(stages->parallel, role));
  }
  const engine::Machine hardware{
      .cluster = &scenario.cluster,
      .topology = &machine.topology,
      .cost = machine.cost.get(),
      .host = {
          .issue_time = entry.framework.issue_time_per_kernel.value,
          // Sixteen or so of a GPU's hundred; a device of few units keeps half of them for compute.
          .communication_sms = std::min(entry.framework.communication_sms.value, scenario.cluster.gpu.sms.value / 2)}};
  const auto loads = detail == Detail::trace ? engine::LinkLoads::recorded : engine::LinkLoads::ignored;
  stages->timeline = engine::simulate(stages->parallel, stages->schedules, hardware, {.loads = loads});
  return stages;
}

Duration estimate(const workload::OpGraph& graph, const cost::CostModel& cost) {
  Duration longest{};
  const std::int64_t rings = workload::work_depends_on_ring(graph) ? graph.mesh.size(workload::MeshAxis::ring) : 1;
  for (std::int64_t ring = 0; ring < rings; ++ring) {
    std::vector<std::array<std::optional<Duration>, workload::kPhases>> of_body(graph.templates.size());
    for (const workload::Role& role : graph.roles) {
      Duration sum{};
      for (const workload::Instance& instance : role.program) {
        std::optional<Duration>& time =
            of_body[instance.block_template.index()].at(static_cast<std::size_t>(instance.phase));
        if (!time) {
          time = kernel_time(graph, graph.of(instance), instance.phase, ring, cost);
        }
        sum += *time;
      }
      longest = std::max(longest, sum);
    }
  }
  return longest;
}

results::PlanResult simulate(const scenario::Scenario& scenario, const Machine& machine,
                             const scenario::PlanEntry& entry, const StudyOptions& options) {
  results::PlanResult result{.name = entry.plan.name,
                             .options = scenario::options_of(entry),
                             .global_batch = entry.plan.global_batch(),
                             .infeasible = check(scenario, entry)};
  if (!result.infeasible.empty()) {
    return result;
  }
  const std::unique_ptr<Stages> stages = run_stages(scenario, machine, entry, Stage::timeline, options.detail);
  result.figures = figures_of(scenario, machine, entry, *stages, options);
  explain_fit(result);
  return result;
}

}  // namespace ulysim::study
