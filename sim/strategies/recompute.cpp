#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// What backward computes again: the forward ops, and whether only readers of the same region see the copies.
struct Selection {
  std::vector<std::size_t> ops{};
  bool within_region{};
};

Selection select(const Plan& plan, const Body& forward) {
  Selection selection{.within_region = plan.recompute == Recompute::selective};
  std::set<std::size_t> kept;  // tensors that full-keep-attention leaves standing
  if (plan.recompute == Recompute::full_keep_attention) {
    for (std::size_t i = forward.ops.size(); i-- > 0;) {
      const Op& op = forward.ops[i];
      if (op.region == Region::core_attention && std::any_of(op.writes.begin(), op.writes.end(), [&](TensorId id) {
            return std::none_of(
                forward.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, forward.ops.end(),
                [&](const Op& later) { return later.region == Region::core_attention && reads(later, id); });
          })) {
        // The last results of attention: its output as the projection reads it, and the statistics.
        kept.insert(i);
      }
    }
  }
  for (std::size_t i = 0; i < forward.ops.size(); ++i) {
    const Region region = forward.ops[i].region;
    switch (plan.recompute) {
      case Recompute::none:
        break;
      case Recompute::selective:
        if (region == Region::core_attention) {
          selection.ops.push_back(i);
        }
        break;
      case Recompute::full:
      case Recompute::full_keep_attention:
        if (kept.count(i) == 0) {
          selection.ops.push_back(i);
        }
        break;
    }
  }
  return selection;
}

/// Puts copies of the selected forward ops in front of backward, on tensors of their own, collectives included.
class LayerPass {
 public:
  LayerPass(BlockTemplate& block, const Plan& plan) : block_(block), plan_(plan) {}

  void run(bool early_stop) {
    const Body& forward = block_.body(Phase::forward);
    Body& backward = block_.body(Phase::backward);
    const Selection selection = select(plan_, forward);
    std::vector<Op> clones;
    std::map<std::int32_t, std::int32_t> loops;
    for (const std::size_t i : selection.ops) {
      clones.push_back(clone(forward.ops[i], forward, backward, loops));
    }
    for (Op& op : backward.ops) {
      for (const TensorId id : std::vector<TensorId>(op.reads)) {
        const auto copy = again_.find(id.index());
        if (copy != again_.end() && (!selection.within_region || op.region == Region::core_attention)) {
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

 private:
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
      auto copy = again_.find(id.index());
      if (copy == again_.end()) {
        Tensor tensor = like(block_.tensor(id), block_.tensor(id).name + "_again");
        tensor.loop = tensor.loop >= 0 ? op.loop : -1;
        copy = again_.emplace(id.index(), block_.add(std::move(tensor))).first;
      }
      replace_write(op, id, copy->second);
    }
    return op;
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
  std::map<std::size_t, TensorId> again_;
};

class RecomputePass final : public Strategy {
 public:
  std::string name() const override { return "recompute"; }
  std::string summary() const override { return "activation checkpointing: full, selective, or all but attention"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    if (context.plan->recompute == Recompute::selective &&
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
    for (BlockTemplate& block : graph.templates) {
      if (block.kind == BlockKind::layer) {
        LayerPass(block, *context.plan).run(context.framework->recompute_early_stop.value != 0);
      }
    }
  }
};

}  // namespace

const Strategy& recompute_strategy() {
  static const RecomputePass strategy;
  return strategy;
}

}  // namespace ulysim::strategies
