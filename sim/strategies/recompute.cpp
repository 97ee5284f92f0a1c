#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// Which ops of the forward run again.
class Selection {
 public:
  Selection(const PlanContext& context)
      : everything_(context.plan->recompute != Recompute::selective),
        kind_(context.framework->selective_recompute.value) {}

  /// Of the ops of a forward body, asked one after the other.
  [[nodiscard]] bool takes(const Op& op) {
    if (everything_) {
      return true;
    }
    return kind_ == spec::SelectiveRecompute::core_attention ? op.region == Region::core_attention : is_cheap(op);
  }
  /// Whether an op of backward reads what was computed again: attention that is repeated as one checkpoint feeds its
  /// own backward, while the map behind it has kept its input.
  [[nodiscard]] bool feeds(const Op& backward) const {
    return everything_ || kind_ == spec::SelectiveRecompute::every_second_gemm ||
           backward.region == Region::core_attention;
  }

 private:
  /// torchtitan's per-op list (distributed/activation_checkpoint.py, _get_custom_policy): attention, all-to-alls and
  /// reduce-scatters are kept, and of the layer's matrix products the first, third, fifth …; loops are whole.
  [[nodiscard]] bool is_cheap(const Op& op) {
    const auto* collective = std::get_if<CollectiveWork>(&op.work);
    if (op.region == Region::core_attention || op.loop >= 0 ||
        (collective != nullptr && collective->kind != CollectiveKind::all_gather)) {
      return false;
    }
    const auto* gemm = std::get_if<GemmWork>(&op.work);
    if (gemm == nullptr || !gemm->groups.empty()) {
      return true;
    }
    ++products_;
    return products_ % 2 == 0;
  }

  bool everything_;
  spec::SelectiveRecompute kind_;
  int products_{};
};

/// Puts copies of the selected forward ops in front of backward, on tensors of their own, collectives included.
class LayerPass {
 public:
  LayerPass(BlockTemplate& block, const PlanContext& context)
      : block_(block), plan_(*context.plan), selection_(context) {}

  void run(bool early_stop) {
    const Body& forward = block_.body(Phase::forward);
    Body& backward = block_.body(Phase::backward);
    if (plan_.recompute == Recompute::full_keep_attention) {
      keep_attention(backward);
    }
    std::vector<Op> clones;
    std::map<std::int32_t, std::int32_t> loops;
    for (const Op& op : forward.ops) {
      if (selection_.takes(op)) {
        clones.push_back(clone(op, forward, backward, loops));
      }
    }
    for (Op& op : backward.ops) {
      for (const TensorId id : std::vector<TensorId>(op.reads)) {
        const auto copy = again_.find(id.index());
        if (copy != again_.end() && selection_.feeds(op)) {
          replace_read(op, id, copy->second);
        }
      }
    }
    if (early_stop || plan_.recompute == Recompute::full_keep_attention) {
      drop_unread(clones, backward.ops);
    }
    backward.ops.insert(backward.ops.begin(), clones.begin(), clones.end());
    mark_checkpoint();
  }

  /// A re-entrant checkpoint runs its backward inside its own: what went in, what came out of it again and the gradient
  /// of that are arguments and locals until it returns (torch/utils/checkpoint.py, CheckpointFunction.backward).
  void hold_ends(Body& backward) {
    for (Op& op : backward.ops) {
      const bool last = std::any_of(op.writes.begin(), op.writes.end(),
                                    [this](TensorId id) { return block_.tensor(id).port == Port::grad_input; });
      for (std::size_t i = 0; last && i < block_.tensors.size(); ++i) {
        const Port port = block_.tensors[i].port;
        const auto copy = again_.find(i);
        if (port == Port::input || port == Port::grad_output) {
          hold(op, TensorId(i));
        } else if (port == Port::output && copy != again_.end()) {
          hold(op, copy->second);
        }
      }
    }
  }

 private:
  static void hold(Op& op, TensorId id) {
    if (!reads(op, id)) {
      op.reads.push_back(id);
    }
  }

  Op clone(Op op, const Body& forward, Body& backward, std::map<std::int32_t, std::int32_t>& loops) {
    op.recomputed = true;
    op.name += "_again";
    if (op.loop >= 0) {
      const auto [loop, fresh] = loops.try_emplace(op.loop, static_cast<std::int32_t>(backward.loops.size()));
      if (fresh) {
        backward.loops.push_back(forward.loops[static_cast<std::size_t>(op.loop)]);
      }
      op.loop = loop->second;
    }
    for (const TensorId id : std::vector<TensorId>(op.reads)) {
      const auto copy = again_.find(id.index());
      if (copy != again_.end()) {
        replace_read(op, id, copy->second);
      }
    }
    for (const TensorId id : std::vector<TensorId>(op.writes)) {
      if (kept_.count(id.index()) != 0) {
        replace_write(op, id, block_.add(like(block_.tensor(id), block_.tensor(id).name + "_unused")));
        continue;
      }
      auto copy = again_.find(id.index());
      if (copy == again_.end()) {
        Tensor tensor = like(block_.tensor(id), block_.tensor(id).name + "_again");
        tensor.loop = tensor.loop >= 0 ? op.loop : -1;
        copy = again_.emplace(id.index(), block_.add(std::move(tensor))).first;
      }
      replace_write(op, id, copy->second);
    }
    for (TensorId& id : op.scratch) {
      id = block_.add(like(block_.tensor(id), block_.tensor(id).name + "_again"));
    }
    return op;
  }

  /// The output and the statistics that the backward kernel reads stay: `s·a·d·e + 4·s·a` bytes a layer, and no
  /// second attention (DistFlashAttn, arXiv 2310.03294 §3.3).
  void keep_attention(const Body& backward) {
    std::map<std::size_t, const Op*> maker;
    for (const Op& op : backward.ops) {
      for (const TensorId id : op.writes) {
        maker.emplace(id.index(), &op);
      }
      if (std::holds_alternative<AttentionWork>(op.work)) {
        for (TensorId id : {op.reads[3], op.reads[4]}) {
          // Rounds exchange or fetch them in backward: what they come from stays.
          for (auto made = maker.find(id.index()); made != maker.end() && source_of(*made->second, id) != id;
               made = maker.find(id.index())) {
            id = source_of(*made->second, id);
          }
          kept_.insert(id.index());
        }
      }
    }
  }

  /// What an exchange or a copy made `id` of.
  static TensorId source_of(const Op& op, TensorId id) {
    const auto slot = static_cast<std::size_t>(std::find(op.writes.begin(), op.writes.end(), id) - op.writes.begin());
    return op.reads.at(std::min(slot, op.reads.size() - 1));
  }

  /// Recompute may end at the last tensor that backward needs.
  static void drop_unread(std::vector<Op>& clones, const std::vector<Op>& backward) {
    std::set<std::size_t> needed;
    for (const Op& op : backward) {
      for (const TensorId id : op.reads) {
        needed.insert(id.index());
      }
    }
    for (std::size_t i = clones.size(); i-- > 0;) {
      const bool useful = std::any_of(clones[i].writes.begin(), clones[i].writes.end(),
                                      [&](TensorId id) { return needed.count(id.index()) != 0; });
      if (!useful) {
        clones.erase(clones.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      for (const TensorId id : clones[i].reads) {
        needed.insert(id.index());
      }
    }
  }

  void mark_checkpoint() {
    for (Tensor& tensor : block_.tensors) {
      if (tensor.port == Port::input && !again_.empty()) {
        tensor.kind = MemoryKind::checkpoints;
      }
    }
  }

  BlockTemplate& block_;
  const Plan& plan_;
  Selection selection_;
  std::map<std::size_t, TensorId> again_;
  std::set<std::size_t> kept_;
};

class RecomputePass final : public Strategy {
 public:
  std::string name() const override { return "recompute"; }
  std::string summary() const override { return "activation checkpointing: full, selective, or all but attention"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    const Plan& plan = *context.plan;
    if (const auto reason = check_layers(context)) {
      return {*reason};
    }
    if (plan.recompute == Recompute::selective &&
        context.framework->selective_recompute.value == spec::SelectiveRecompute::nothing) {
      return {{fmt::format("{} has no selective recompute: it checkpoints a layer whole or not at all",
                           context.framework->name),
               {},
               "recompute: full, or none"}};
    }
    return {};
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (context.plan->recompute == Recompute::none) {
      return;
    }
    const std::set<std::size_t> kept = keep_whole(context, graph);
    for (std::size_t i = 0; i < graph.templates.size(); ++i) {
      if (graph.templates[i].kind == BlockKind::layer && kept.count(i) == 0) {
        // A re-entrant checkpoint is an ordinary forward call: it ends where the layer does.
        const bool reentrant = context.framework->recompute_reentrant.value != 0;
        LayerPass layer(graph.templates[i], context);
        layer.run(!reentrant && context.framework->recompute_early_stop.value != 0);
        if (reentrant && context.plan->recompute == Recompute::full) {
          layer.hold_ends(graph.templates[i].body(Phase::backward));
        }
      }
    }
  }

 private:
  static std::int64_t virtual_stages(const Plan& plan) {
    return plan.mesh.size(MeshAxis::pipeline) * plan.virtual_stages;
  }

  static std::optional<Infeasible> check_layers(const PlanContext& context) {
    const std::int64_t layers = context.plan->recompute_layers.value_or(0);
    const std::int64_t stages = virtual_stages(*context.plan);
    if (layers > context.model->layers) {
      return Infeasible{fmt::format("recompute: {{layers: {}}} of a model of {}", layers, context.model->layers),
                        {{"layers", static_cast<double>(context.model->layers)}},
                        "recompute: full"};
    }
    if (layers % stages != 0) {
      return Infeasible{
          fmt::format("recompute: {{layers: {}}} does not spread evenly over {} virtual stages", layers, stages),
          {{"virtual_stages", static_cast<double>(stages)}},
          fmt::format("layers: {}", (layers + stages - 1) / stages * stages)};
    }
    return std::nullopt;
  }

  /// Templates of the layers that keep all their activations: those behind the first ones of every virtual stage
  /// (Megatron-LM, recompute_method block).
  static std::set<std::size_t> keep_whole(const PlanContext& context, OpGraph& graph) {
    if (!context.plan->recompute_layers) {
      return {};
    }
    const std::int64_t first = *context.plan->recompute_layers / virtual_stages(*context.plan);
    std::set<BlockOf> kept;
    for (const std::vector<BlockOf>& stage : layers_of_stages(graph)) {
      const auto recomputed = std::min(static_cast<std::size_t>(first), stage.size());
      kept.insert(stage.begin() + static_cast<std::ptrdiff_t>(recomputed), stage.end());
    }
    return split_templates(graph, kept, "_kept");
  }
};

}  // namespace

const Strategy& recompute_strategy() {
  static const RecomputePass strategy;
  return strategy;
}

}  // namespace ulysim::strategies
