#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

bool is_selected(const Plan& plan, const Op& op) {
  return plan.recompute != Recompute::selective || op.region == Region::core_attention;
}

/// Puts copies of the selected forward ops in front of backward, on tensors of their own, collectives included.
class LayerPass {
 public:
  LayerPass(BlockTemplate& block, const Plan& plan) : block_(block), plan_(plan) {}

  void run(bool early_stop) {
    const Body& forward = block_.body(Phase::forward);
    Body& backward = block_.body(Phase::backward);
    if (plan_.recompute == Recompute::full_keep_attention) {
      keep_attention(backward);
    }
    std::vector<Op> clones;
    std::map<std::int32_t, std::int32_t> loops;
    for (const Op& op : forward.ops) {
      if (is_selected(plan_, op)) {
        clones.push_back(clone(op, forward, backward, loops));
      }
    }
    for (Op& op : backward.ops) {
      for (const TensorId id : std::vector<TensorId>(op.reads)) {
        const auto copy = again_.find(id.index());
        if (copy != again_.end() && is_selected(plan_, op)) {
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
  std::map<std::size_t, TensorId> again_;
  std::set<std::size_t> kept_;
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
