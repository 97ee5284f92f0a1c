#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

constexpr MeshAxis kRing = MeshAxis::ring;

/// Unrolls the attention calls of one block into the steps of a ring (Ring Attention, arXiv 2310.01889), or gathers
/// the keys and values first, for one call (Llama 3, arXiv 2407.21783 §3.3.2) or for the same steps (PyTorch
/// _attention.py, _AllGatherRotater).
class BlockPass {
 public:
  BlockPass(OpGraph& graph, BlockTemplate& block, const PlanContext& context)
      : rings_(graph.mesh.size(kRing)),
        gathers_(context.plan->ring_exchange == RingExchange::all_gather),
        steps_(!gathers_ || context.framework->ring_steps_through_gathered.value != 0),
        block_(block),
        context_(context) {}

  void run() {
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      Body& body = block_.body(phase);
      out_.clear();
      for (const Op& op : body.ops) {
        const auto* work = std::get_if<AttentionWork>(&op.work);
        if (work == nullptr) {
          out_.push_back(op);
          continue;
        }
        const bool forward = work->direction == kernel::Direction::forward;
        served_ = &op;
        const Op call = context_.framework->ring_repeats_kv.value != 0 ? on_repeated(op) : op;
        if (steps_) {
          forward ? ring_forward(call) : ring_backward(call);
        } else {
          forward ? gathered_forward(call) : gathered_backward(call);
        }
        add_up_repeated(op, call);
      }
      body.ops = std::move(out_);
    }
  }

 private:
  Tensor& at(TensorId id) { return block_.tensor(id); }

  /// Rounds over parts of the heads each have a ring of their own, whose names they tell apart by the call's.
  [[nodiscard]] std::string own(const std::string& name) const {
    return served_->part ? fmt::format("{}_of_{}", name, served_->name) : name;
  }

  TensorId make(TensorId model, const std::string& name, std::int64_t bytes) {
    Tensor tensor = like(at(model), own(name));
    tensor.element_bytes = bytes;
    tensor.loop = served_->loop;
    return block_.add(std::move(tensor));
  }
  TensorId buffer(TensorId model, const std::string& name, std::int64_t bytes) {
    const TensorId id = make(model, name, bytes);
    at(id).kind = MemoryKind::communication_buffers;
    return id;
  }

  Op send(const std::string& name, std::vector<TensorId> from, std::vector<TensorId> to, const Op& served) const {
    return {.name = own(name),
            .work = CollectiveWork{.kind = CollectiveKind::send_recv, .axes = {kRing}},
            .reads = std::move(from),
            .writes = std::move(to),
            .stream = context_.framework->ring_overlaps.value != 0 ? Stream::ring_comm : Stream::compute,
            .purpose = Purpose::ring,
            .region = served.region,
            .loop = served.loop,
            .part = served.part};
  }
  Op collective(const std::string& name, CollectiveKind kind, std::vector<TensorId> from, std::vector<TensorId> to,
                const Op& served) const {
    Op op = send(name, std::move(from), std::move(to), served);
    op.work = CollectiveWork{.kind = kind, .axes = {kRing}};
    return op;
  }
  Op elementwise(const std::string& name, std::vector<TensorId> reads, std::vector<TensorId> writes,
                 std::vector<Traffic> traffic, const Op& served) const {
    return {.name = own(name),
            .work = ElementwiseWork{.traffic = std::move(traffic),
                                    .launches = context_.framework->ring_merge_kernels.value},
            .reads = std::move(reads),
            .writes = std::move(writes),
            .region = served.region,
            .loop = served.loop,
            .part = served.part};
  }

  /// The call on keys and values repeated to the query heads, as stacks do that call attention without grouped heads.
  Op on_repeated(const Op& op) {
    Op call = op;
    for (const std::size_t slot : {1U, 2U}) {
      const auto known = repeated_.find(op.reads[slot].index());
      if (known != repeated_.end()) {
        call.reads[slot] = known->second;
      } else if (const TensorId wide = wide_like(op.reads[slot], op); wide != op.reads[slot]) {
        out_.push_back(elementwise("repeat_" + at(op.reads[slot]).name, {op.reads[slot]}, {wide},
                                   {{op.reads[slot], 2.0}, {wide, 2.0}}, op));
        std::get<ElementwiseWork>(out_.back().work).launches = 1;
        repeated_[op.reads[slot].index()] = call.reads[slot] = wide;
      }
      if (std::get<AttentionWork>(op.work).direction == kernel::Direction::backward) {
        call.writes[slot] = wide_like(op.writes[slot], op);
      }
    }
    return call;
  }

  /// `id` with as many key/value heads as there are query heads; itself where it has them.
  TensorId wide_like(TensorId id, const Op& op) {
    const std::int64_t heads = at(op.reads[0]).find(Dim::heads)->size;
    Tensor wide = like(at(id), at(id).name + "_to_queries");
    Extent& kv = *wide.find(Dim::kv_heads);
    // Parts of the heads count in parts: as many of both.
    if (kv.size == heads || served_->part) {
      return id;
    }
    kv.replicas *= heads / kv.size;
    kv.size = heads;
    return block_.add(std::move(wide));
  }

  /// Gradients of repeated keys and values add up to those of the few.
  void add_up_repeated(const Op& op, const Op& call) {
    for (std::size_t i = 1; i < std::min<std::size_t>(3, op.writes.size()); ++i) {
      if (call.writes[i] != op.writes[i]) {
        out_.push_back(elementwise("sum_" + at(op.writes[i]).name, {call.writes[i]}, {op.writes[i]},
                                   {{call.writes[i], 2.0}, {op.writes[i], 2.0}}, op));
        std::get<ElementwiseWork>(out_.back().work).launches = 1;
      }
    }
  }

  /// Keys and values of every step: step 0 its own, step i those sent on by the neighbour in step i−1.
  struct Keys {
    TensorId k{}, v{};
  };
  /// Those of step i+1: a transfer, or one gather for all, to be queued before the kernel of step i so that they
  /// overlap.
  Keys next_keys(const Keys& keys, std::int64_t step, const char* pass, const Op& served) {
    if (gathers_) {
      return step == 0 ? gather_keys(served, pass) : keys;
    }
    const Keys next{buffer(keys.k, fmt::format("k_{}_{}", pass, step + 1), at(keys.k).element_bytes),
                    buffer(keys.v, fmt::format("v_{}_{}", pass, step + 1), at(keys.v).element_bytes)};
    out_.push_back(send(fmt::format("send_kv_{}_{}", pass, step), {keys.k, keys.v}, {next.k, next.v}, served));
    return next;
  }

  void ring_forward(const Op& op) {
    Keys keys{op.reads[1], op.reads[2]};
    const TensorId sum = make(op.writes[0], "o_sum", 4);
    const double merge = context_.framework->ring_merge_forward.value;
    std::vector<TensorId> kept{sum};
    for (std::int64_t step = 0; step < rings_; ++step) {
      const Keys next = step + 1 < rings_ ? next_keys(keys, step, "fwd", op) : Keys{};
      Op part = op;
      auto& work = std::get<AttentionWork>(part.work);
      work.key_shift = step;
      work.gathered_keys = gathers_ && step > 0;
      part.name = fmt::format("{}_{}", op.name, step);
      part.reads = {op.reads[0], keys.k, keys.v};
      part.writes = {make(op.writes[0], fmt::format("o_{}", step), at(op.writes[0]).element_bytes),
                     make(op.writes[1], fmt::format("lse_{}", step), at(op.writes[1]).element_bytes)};
      out_.push_back(part);
      std::vector<TensorId> merged{part.writes[0], part.writes[1]};
      if (step > 0) {
        merged.insert(merged.end(), {sum, op.writes[1]});
      }
      out_.push_back(
          elementwise(fmt::format("merge_{}", step), merged, {sum, op.writes[1]}, {{part.writes[0], merge}}, op));
      if (context_.framework->ring_keeps_received.value != 0) {
        kept.push_back(part.writes[0]);
        if (!work.gathered_keys) {  // Gathered ones are there to the last call as it is.
          kept.insert(kept.end(), {keys.k, keys.v});
        }
      }
      keys = next;
    }
    out_.push_back(elementwise("finish_o", kept, {op.writes[0]}, {{sum, 6.0}}, op));
  }

  void ring_backward(const Op& op) {
    const auto [q, o, lse, d_o] = std::tuple{op.reads[0], op.reads[3], op.reads[4], op.reads[5]};
    Keys keys{op.reads[1], op.reads[2]};
    const TensorId dq_sum = make(op.writes[0], "d_q_sum", 4);
    // R sends bring dK and dV home behind the keys (ring-flash-attention, USP); where those of the own keys stay, the
    // others need R − 1 (TransformerEngine context_parallel.py, which goes the other way round with the same volume).
    const bool own_stay = context_.framework->ring_gradient_extra_send.value == 0;
    const auto wire = static_cast<std::int64_t>(context_.framework->ring_gradient_wire_bytes.value);
    std::optional<Keys> held;  // dK, dV of the keys that this step attends to, as far as they are summed
    std::optional<Keys> own;
    const double merge = context_.framework->ring_merge_backward.value;
    for (std::int64_t step = 0; step < rings_; ++step) {
      const Keys next = step + 1 < rings_ ? next_keys(keys, step, "bwd", op) : Keys{};
      Op part = op;
      auto& work = std::get<AttentionWork>(part.work);
      work.key_shift = step;
      work.gathered_keys = gathers_ && step > 0;
      part.name = fmt::format("{}_{}", op.name, step);
      part.reads = {q, keys.k, keys.v, o, lse, d_o};
      part.writes = {make(op.writes[0], fmt::format("d_q_{}", step), 2),
                     make(op.writes[1], fmt::format("d_k_{}", step), 2),
                     make(op.writes[2], fmt::format("d_v_{}", step), 2)};
      for (std::size_t extra = 3; extra < op.writes.size(); ++extra) {
        part.writes.push_back(make(op.writes[extra], fmt::format("{}_{}", at(op.writes[extra]).name, step),
                                   at(op.writes[extra]).element_bytes));
      }
      out_.push_back(part);
      const Keys sums{buffer(op.writes[1], fmt::format("d_k_sum_{}", step), wire),
                      buffer(op.writes[2], fmt::format("d_v_sum_{}", step), wire)};
      std::vector<TensorId> merged{part.writes[0], part.writes[1], part.writes[2]};
      if (step > 0) {
        merged.push_back(dq_sum);
      }
      if (held) {
        merged.insert(merged.end(), {held->k, held->v});
      }
      out_.push_back(elementwise(fmt::format("merge_backward_{}", step), merged, {dq_sum, sums.k, sums.v},
                                 {{part.writes[0], merge}, {part.writes[1], merge}, {part.writes[2], merge}}, op));
      keys = next;
      if (step == 0 && own_stay) {
        own = sums;
        continue;
      }
      held = {buffer(op.writes[1], fmt::format("d_k_arrived_{}", step), wire),
              buffer(op.writes[2], fmt::format("d_v_arrived_{}", step), wire)};
      out_.push_back(send(fmt::format("send_d_kv_{}", step), {sums.k, sums.v}, {held->k, held->v}, op));
    }
    out_.push_back(elementwise("finish_d_q", {dq_sum}, {op.writes[0]}, {{dq_sum, 6.0}}, op));
    std::vector<TensorId> parts{held->k, held->v};
    if (own) {
      parts.insert(parts.end(), {own->k, own->v});
    }
    const double finish = static_cast<double>(wire) + 2.0;
    out_.push_back(
        elementwise("finish_d_kv", parts, {op.writes[1], op.writes[2]}, {{held->k, finish}, {held->v, finish}}, op));
  }

  TensorId whole(TensorId id, const std::string& name) {
    const TensorId full = buffer(id, name, at(id).element_bytes);
    remove_split(*at(full).find(Dim::tokens), kRing);
    return full;
  }

  Keys gather_keys(const Op& op, const char* pass) {
    const Keys full{whole(op.reads[1], fmt::format("k_all_{}", pass)),
                    whole(op.reads[2], fmt::format("v_all_{}", pass))};
    out_.push_back(collective(fmt::format("gather_kv_{}", pass), CollectiveKind::all_gather, {op.reads[1], op.reads[2]},
                              {full.k, full.v}, op));
    return full;
  }

  void gathered_forward(const Op& op) {
    const Keys full = gather_keys(op, "fwd");
    Op call = op;
    call.reads = {op.reads[0], full.k, full.v};
    out_.push_back(call);
  }

  void gathered_backward(const Op& op) {
    const Keys full = gather_keys(op, "bwd");
    Op call = op;
    call.reads[1] = full.k;
    call.reads[2] = full.v;
    call.writes[1] = whole(op.writes[1], "d_k_all");
    call.writes[2] = whole(op.writes[2], "d_v_all");
    at(call.writes[1]).partial.insert(kRing);
    at(call.writes[2]).partial.insert(kRing);
    out_.push_back(call);
    out_.push_back(collective("scatter_d_kv", CollectiveKind::reduce_scatter, {call.writes[1], call.writes[2]},
                              {op.writes[1], op.writes[2]}, op));
  }

  std::int64_t rings_;
  bool gathers_;  ///< keys and values, before they are needed
  bool steps_;    ///< a call for each rank's keys
  BlockTemplate& block_;
  const PlanContext& context_;
  std::vector<Op> out_;
  std::map<std::size_t, TensorId> repeated_;
  const Op* served_{};  ///< the call being unrolled
};

class Ring final : public Strategy {
 public:
  std::string name() const override { return "ring"; }
  std::string summary() const override { return "Ring Attention: keys and values travel round, or are gathered"; }

  std::vector<Infeasible> check(const PlanContext& context) const override { return striped_blocks(*context.plan); }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (graph.mesh.size(kRing) == 1) {
      return;
    }
    split_samples(graph, Dim::tokens, kRing);
    for (BlockTemplate& block : graph.templates) {
      for (Tensor& tensor : block.tensors) {
        if (Extent* tokens = tensor.find(Dim::tokens)) {
          tokens->layout = context.plan->ring_layout;
        }
      }
      BlockPass(graph, block, context).run();
    }
  }

 private:
  /// Stripes that cut the blocks of a sparse pattern unevenly leave no rank with whole blocks to compute.
  static std::vector<Infeasible> striped_blocks(const Plan& plan) {
    const std::int64_t rings = plan.mesh.size(kRing);
    if (!plan.block_sparse || plan.ring_layout != Layout::striped || plan.block_sparse->block % rings == 0) {
      return {};
    }
    return {{fmt::format("blocks of {} tokens do not divide into {} stripes", plan.block_sparse->block, rings),
             {{"block", static_cast<double>(plan.block_sparse->block)}, {"ring", static_cast<double>(rings)}},
             "ring_layout: zigzag"}};
  }
};

}  // namespace

const Strategy& ring_strategy() {
  static const Ring strategy;
  return strategy;
}

}  // namespace ulysim::strategies
