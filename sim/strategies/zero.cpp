#include <fmt/format.h>

#include <algorithm>

#include "sim/strategies/optimizer_bytes.h"
#include "sim/strategies/rewrite.h"
#include "sim/strategies/zero_parts.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// ZeRO (arXiv 1910.02054): optimizer states, gradients and parameters sharded over data × sequence ranks.
class Zero final : public Strategy {
 public:
  std::string name() const override { return "zero"; }
  std::string summary() const override { return "ZeRO 0–3: states, gradients, parameters sharded; gathers prefetched"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    std::vector<Infeasible> reasons;
    check_replicas(context, reasons);
    check_offload(context, reasons);
    return reasons;
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    const bool shares = graph.mesh.size(kSampleAxes) > 1;
    if (!shares && context.plan->parameter_offload == Offload::none) {
      return;
    }
    std::int64_t reduced_at_once = 1;
    for (BlockTemplate& block : graph.templates) {
      if (block.kind == BlockKind::optimizer || block.kind == BlockKind::boundary) {
        continue;
      }
      name_replicas(graph.mesh, block);
      if (cuts_parameters(context)) {
        shard_parameters(context, graph, block);
      } else if (context.plan->zero >= 1 && context.framework->overlap_parameter_gather.value != 0) {
        gather_updated_in_forward(graph, block);
      }
      if (shares && !reduces_before_update(context)) {
        const std::int64_t elements = reduce_gradients(context, graph, block);
        reduced_at_once = std::max(reduced_at_once, block.kind == BlockKind::layer ? elements : 1);
      }
    }
    if (shares && reduces_before_update(context)) {
      reduce_before_update(context, graph);
    }
    for (BlockTemplate& block : graph.templates) {
      if (block.kind == BlockKind::optimizer && context.plan->zero > 0) {
        shard_optimizer(context, graph, block);
      }
    }
    if (context.framework->reductions_in_flight) {
      // Buckets told in what a layer reduces at a time, and that which it is about to.
      const std::int64_t in_flight = context.framework->reductions_in_flight->value;
      graph.credit_windows[static_cast<std::size_t>(CreditPool::reductions)] =
          1 + std::max<std::int64_t>(1, in_flight * reduce_bucket(context, graph) / reduced_at_once);
    }
    // The unit in use and those that may be fetched ahead of it; never fewer than a body holds at once.
    graph.credit_windows[static_cast<std::size_t>(CreditPool::parameters)] = std::max(
        1 + context.framework->prefetched_units(context.model->hidden, smallest_unit(graph)), most_held_at_once(graph));
  }

 private:
  static Infeasible unfit_replicas(const PlanContext& context, const std::string& why, std::string instead) {
    const Mesh& mesh = context.plan->mesh;
    return {fmt::format("data_replicate {}: {}", mesh.replicate, why),
            {{"data_replicate", static_cast<double>(mesh.replicate)},
             {"ranks", static_cast<double>(mesh.size(kSampleAxes))}},
            std::move(instead)};
  }

  static void check_replicas(const PlanContext& context, std::vector<Infeasible>& reasons) {
    const Mesh& mesh = context.plan->mesh;
    if (mesh.replicate == 1) {
      return;
    }
    const std::int64_t ranks = mesh.size(kSampleAxes);
    const std::int64_t group = ranks / mesh.replicate;
    // The most replicas, up to those asked for, that leave groups of two or more in which experts find their place.
    std::int64_t best = std::min(mesh.replicate, ranks);
    while (best > 1 && (ranks % best != 0 || ranks / best < 2 || ranks / best % mesh.expert != 0)) {
      --best;
    }
    const std::string instead = fmt::format("data_replicate {}", best);
    if (ranks % mesh.replicate != 0) {
      reasons.push_back(
          unfit_replicas(context, fmt::format("does not divide the {} ranks of data × sequence", ranks), instead));
    } else if (group < 2) {
      reasons.push_back(unfit_replicas(
          context, fmt::format("groups of one of {} ranks, in which nothing is sharded", ranks), instead));
    } else if (group % mesh.expert != 0) {
      reasons.push_back(unfit_replicas(
          context, fmt::format("expert {} does not divide its shard groups of {}", mesh.expert, group), instead));
    }
    if (context.plan->zero == 0) {
      reasons.push_back(unfit_replicas(context, "ZeRO-0 shards nothing, all ranks are replicas", "zero: 3"));
    }
  }

  static void check_offload(const PlanContext& context, std::vector<Infeasible>& reasons) {
    if (context.plan->parameter_offload == Offload::none) {
      return;
    }
    const auto zero = static_cast<double>(context.plan->zero);
    if (context.plan->zero < 3) {
      // DeepSpeed runtime/zero/config.py: offload_param is valid with stage 3 only.
      reasons.push_back({fmt::format("parameter_offload needs ZeRO-3: with stage {} weights stay gathered on the GPU",
                                     context.plan->zero),
                         {{"zero", zero}},
                         "zero: 3"});
    }
    if (context.plan->parameter_offload == Offload::nvme && !context.framework->optimizer_swap) {
      reasons.push_back({fmt::format("parameter_offload: nvme: {} does not swap parameters", context.framework->name),
                         {},
                         "parameter_offload: cpu"});
    }
    if (context.framework->parameter_is_master() && context.plan->optimizer_offload == Offload::none) {
      // PyTorch torch/distributed/fsdp/_fully_shard/_fsdp_api.py, CPUOffloadPolicy: parameters, gradients and
      // optimizer states.
      reasons.push_back({fmt::format("{} offloads parameters and the optimizer together: the sharded parameter is what "
                                     "the optimizer updates",
                                     context.framework->name),
                         {},
                         "optimizer: {offload: cpu}"});
    }
  }

  static std::int64_t most_held_at_once(const OpGraph& graph) {
    std::int64_t most = 1;
    for (const BlockTemplate& block : graph.templates) {
      for (const Body& body : block.bodies) {
        std::int64_t held = 0;
        for (const Op& op : body.ops) {
          held += op.acquire == CreditPool::parameters ? 1 : 0;
          most = std::max(most, held);
          held -= op.release.contains(CreditPool::parameters) ? 1 : 0;
        }
      }
    }
    return most;
  }

  /// Elements of the smallest unit of a layer that is gathered; 0 where none is.
  static std::int64_t smallest_unit(const OpGraph& graph) {
    std::int64_t smallest = 0;
    for (const BlockTemplate& block : graph.templates) {
      for (const Op& op : block.body(Phase::forward).ops) {
        if (block.kind != BlockKind::layer || op.purpose != Purpose::parameters || !is_collective(op)) {
          continue;
        }
        std::int64_t elements = 0;
        for (const TensorId id : op.writes) {
          elements += local_elements(block.tensor(id), graph.mesh);
        }
        smallest = smallest == 0 ? elements : std::min(smallest, elements);
      }
    }
    return smallest;
  }

  static void shard_optimizer(const PlanContext& context, const OpGraph& graph, BlockTemplate& block) {
    const bool stores =
        context.plan->parameter_offload != Offload::none && context.plan->optimizer_offload == Offload::none;
    std::vector<Tensor> wholes;
    for (Tensor& tensor : block.tensors) {
      const AxisSet axes = sharing_of(graph.mesh, tensor).shard;
      if (tensor.kind == MemoryKind::optimizer_states && (stores || !axes.empty())) {
        wholes.push_back(tensor);
        shard(tensor, axes);
      }
    }
    const auto weight_bytes = static_cast<std::int64_t>(optimizer_bytes(*context.framework, *context.plan).weight);
    for (Tensor& weights : wholes) {
      weights.kind = MemoryKind::weights;
      weights.element_bytes = weight_bytes;
      weights.shared = true;
    }
    if (stores) {
      store_updated(context, graph, wholes, block);
    } else if (!cuts_parameters(context) && context.framework->overlap_parameter_gather.value == 0) {
      gather_updated(graph, wholes, block);
    }
  }

  /// Stages 1 and 2 hand the updated weights to everybody, in place.
  static void gather_updated(const OpGraph& graph, std::vector<Tensor>& wholes, BlockTemplate& block) {
    for (Tensor& weights : wholes) {
      const bool experts = weights.find(Dim::experts) != nullptr;
      const AxisSet axes = sharing_of(graph.mesh, weights).shard;
      weights.name = experts ? "updated_experts" : "updated_weights";
      Tensor part = weights;
      part.name = experts ? "updated_expert_shard" : "updated_shard";
      shard(part, axes);
      const TensorId part_id = block.add(std::move(part));
      const TensorId whole_id = block.add(std::move(weights));
      Body& update = block.body(Phase::update);
      update.ops.front().writes.push_back(part_id);
      update.ops.push_back({.name = experts ? "gather_updated_experts" : "gather_updated_weights",
                            .work = CollectiveWork{.kind = CollectiveKind::all_gather, .axes = axes},
                            .reads = {part_id},
                            .writes = {whole_id},
                            .stream = Stream::zero_gather,
                            .purpose = Purpose::parameters});
    }
  }

  /// Shards that live in host memory or on drives go back there from an optimizer on the GPU.
  static void store_updated(const PlanContext& context, const OpGraph& graph, std::vector<Tensor>& wholes,
                            BlockTemplate& block) {
    for (Tensor& weights : wholes) {
      const bool experts = weights.find(Dim::experts) != nullptr;
      shard(weights, sharing_of(graph.mesh, weights).shard);
      weights.name = experts ? "updated_expert_shard" : "updated_shard";
      Tensor stored = weights;
      stored.name += "_on_host";
      stored.space = Space::host;
      Tensor kept = stored;
      kept.name += "_stored";
      kept.space = Space::nvme;
      const TensorId part = block.add(std::move(weights));
      const TensorId host = block.add(std::move(stored));
      Body& update = block.body(Phase::update);
      update.ops.front().writes.push_back(part);
      update.ops.push_back({.name = experts ? "store_updated_experts" : "store_updated_weights",
                            .work = CopyWork{},
                            .reads = {part},
                            .writes = {host},
                            .stream = Stream::device_to_host,
                            .purpose = Purpose::parameter_offload});
      if (context.plan->parameter_offload == Offload::nvme) {
        update.ops.push_back({.name = experts ? "write_updated_experts" : "write_updated_weights",
                              .work = CopyWork{},
                              .reads = {host},
                              .writes = {block.add(std::move(kept))},
                              .stream = Stream::nvme_write,
                              .purpose = Purpose::parameter_offload});
      }
    }
  }
};

}  // namespace

const Strategy& zero_strategy() {
  static const Zero strategy;
  return strategy;
}

}  // namespace ulysim::strategies
