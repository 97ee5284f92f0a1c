#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/spec/load.h"
#include "sim/strategies/strategy.h"
#include "sim/workload/attention_workspace.h"
#include "sim/workload/hf_config.h"
#include "sim/workload/shape.h"
#include "sim/workload/training_step.h"
#include "sim/workload/verify.h"
#include "tests/support/passes.h"

/// A bench for passes: a model, a plan, and the graph after the passes that a test asks for, and no others. A test of
/// one pass so does not depend on the rest of the catalogue.
namespace ulysim::strategies::lab {

using workload::MeshAxis;

inline workload::Transformer model(std::string_view name) {
  return workload::load_hf_config(std::filesystem::path(ULYSIM_SOURCE_DIR) / "scenarios" / "models" / name);
}

/// The model with its first `layers` layers only: graphs are rewritten by template, so two or three show everything.
inline workload::Transformer short_model(std::string_view name, std::int64_t layers) {
  workload::Transformer t = model(name);
  t.layers = std::min(t.layers, layers);
  t.layer_specs.resize(static_cast<std::size_t>(t.layers));
  return t;
}

inline spec::Catalog catalog() {
  return spec::Catalog(std::filesystem::path(ULYSIM_SOURCE_DIR) / "hw_models" / "catalog");
}

inline spec::Framework framework(std::string_view name = "deepspeed-hf") {
  return catalog().load_framework(name);
}

inline bool has(std::string_view pass) {
  return find_strategy(pass) != nullptr;
}

inline const Strategy& pass(std::string_view name) {
  tests::need_pass(name);
  return *find_strategy(name);
}

struct Bench {
  workload::Transformer model{};
  spec::Framework framework{};
  Plan plan{};

  [[nodiscard]] PlanContext context() const { return {.model = &model, .framework = &framework, .plan = &plan}; }

  /// What check() and parallelize() are asked about: all that the plan needs must be there.
  [[nodiscard]] PlanContext whole_plan() const {
    for (const std::string& name : passes_of(plan)) {
      tests::need_pass(name);
    }
    return context();
  }

  [[nodiscard]] workload::OpGraph logical() const {
    const spec::Framework& f = framework;
    workload::ElementwiseCosts costs{.norm_forward = f.norm_forward.value,
                                     .norm_backward = f.norm_backward.value,
                                     .rope_forward = f.rope_forward.value,
                                     .rope_backward = f.rope_backward.value,
                                     .activation_forward = f.activation_forward.value,
                                     .activation_backward = f.activation_backward.value,
                                     .residual_forward = f.residual_forward.value,
                                     .residual_backward = f.residual_backward.value,
                                     .loss_forward = f.loss_forward.value,
                                     .loss_backward = f.loss_backward.value,
                                     .norm_saved = static_cast<std::int64_t>(f.norm_saved.value),
                                     .optimizer_traffic = f.optimizer_traffic.value,
                                     .weight_bytes = static_cast<std::int64_t>(f.weight_bytes.value),
                                     .gradient_bytes = static_cast<std::int64_t>(f.gradient_bytes.value)};
    return workload::build_training_step(
        model,
        {.sequence_length = plan.sequence_length,
         .batch = plan.micro_batch * plan.mesh.size(MeshAxis::data),
         .micro_batches = plan.accumulation,
         .attention = plan.attention,
         .mask = plan.mask,
         .sliding_window = plan.sliding_window,
         .block_sparse = plan.block_sparse,
         .documents = plan.documents,
         .gemm_precision = plan.gemm_precision,
         .quantised_gather = f.quantised_gather.value != 0 && plan.zero == 3,
         .adapters = plan.adapters,
         .costs = costs,
         .vocabulary_multiple =
             f.vocabulary_multiple.value == 1 ? 1 : f.vocabulary_multiple.value * plan.mesh.size(MeshAxis::tensor)});
  }

  /// The named passes over the logical graph, in the catalogue's order; types hold after each.
  [[nodiscard]] workload::OpGraph after(const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      (void)pass(name);
    }
    workload::OpGraph graph = logical();
    graph.mesh = plan.mesh;
    for (const Strategy* each : strategies()) {
      if (std::find(names.begin(), names.end(), each->name()) == names.end()) {
        continue;
      }
      each->apply(context(), graph);
      const auto findings = workload::verify_shapes(graph);
      if (!findings.empty()) {
        throw std::runtime_error("after " + each->name() + ": " + findings.front());
      }
    }
    workload::size_attention_workspaces(graph);
    workload::place_lifetimes(graph);
    return graph;
  }
};

/// Everything off: one GPU, no ZeRO, no recompute.
inline Plan plain_plan(std::int64_t sequence_length) {
  return {.sequence_length = sequence_length, .recompute = Recompute::none, .zero = 0};
}

inline Bench bench(std::string_view name, Plan plan, std::int64_t layers = 2) {
  return {.model = short_model(name, layers), .framework = framework(), .plan = std::move(plan)};
}

inline const workload::BlockTemplate& layer_of(const workload::OpGraph& graph) {
  for (const workload::BlockTemplate& block : graph.templates) {
    if (block.kind == workload::BlockKind::layer) {
      return block;
    }
  }
  throw std::runtime_error("the graph has no layer");
}

/// Bytes that one GPU sends by the rules of nccl-tests (doc/PERFORMANCE.md): payload × 2(n−1)/n for all-reduce,
/// (n−1)/n for all-gather, reduce-scatter and all-to-all, 1 for send/recv.
inline double bytes_sent(const workload::OpGraph& graph, const workload::BlockTemplate& block,
                         const workload::Body& body, const workload::Op& op) {
  const auto* work = std::get_if<workload::CollectiveWork>(&op.work);
  if (work == nullptr) {
    return 0;
  }
  const auto payload = static_cast<double>(workload::payload_of(graph, block, body, op).value());
  const auto n = static_cast<double>(graph.mesh.size(work->axes));
  switch (work->kind) {
    case workload::CollectiveKind::all_reduce:
      return payload * 2 * (n - 1) / n;
    case workload::CollectiveKind::send_recv:
      return payload;
    default:
      return payload * (n - 1) / n;
  }
}

/// Which ops of a layer to add up.
struct Asked {
  workload::Phase phase{workload::Phase::forward};
  workload::Purpose purpose{workload::Purpose::ulysses};
  bool recomputed{};
  workload::When when{workload::When::every_micro_batch};
};

inline double sent(const workload::OpGraph& graph, const workload::BlockTemplate& block, const Asked& asked) {
  const workload::Body& body = block.body(asked.phase);
  double sum = 0;
  for (const workload::Op& op : body.ops) {
    if (op.purpose == asked.purpose && op.recomputed == asked.recomputed && op.when == asked.when) {
      sum += bytes_sent(graph, block, body, op);
    }
  }
  return sum;
}

inline double sent(const workload::OpGraph& graph, const Asked& asked) {
  return sent(graph, layer_of(graph), asked);
}

inline std::int64_t count(const workload::BlockTemplate& block, const Asked& asked, workload::CollectiveKind kind) {
  std::int64_t number = 0;
  for (const workload::Op& op : block.body(asked.phase).ops) {
    const auto* work = std::get_if<workload::CollectiveWork>(&op.work);
    number += work != nullptr && work->kind == kind && op.purpose == asked.purpose &&
                      op.recomputed == asked.recomputed && op.when == asked.when
                  ? 1
                  : 0;
  }
  return number;
}

}  // namespace ulysim::strategies::lab
