#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"
#include "sim/strategies/tensor_overlap.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

constexpr MeshAxis kTensor = MeshAxis::tensor;

/// Dimensions whose weights are cut: columns first, rows second (Megatron-LM, arXiv 1909.08053 §3).
bool is_cut(Dim dim) {
  return dim == Dim::heads || dim == Dim::kv_heads || dim == Dim::ffn || dim == Dim::vocab;
}

bool has_cut(const Tensor& tensor) {
  return std::any_of(tensor.shape.begin(), tensor.shape.end(), [](const Extent& e) { return is_cut(e.dim); });
}

/// An activation between what is cut: under sequence parallelism its tokens are split (arXiv 2205.05198 §4.2.2).
bool is_between(const Tensor& tensor) {
  return tensor.rows() != nullptr && !has_cut(tensor);
}

/// The widths of the model's MLPs: dense, expert, shared.
std::vector<std::int64_t> ffn_widths(const Transformer& model) {
  const auto is_moe = [](const LayerSpec& layer) { return layer.moe; };
  std::vector<std::int64_t> widths;
  if (!std::all_of(model.layer_specs.begin(), model.layer_specs.end(), is_moe)) {
    widths.push_back(model.ffn);
  }
  if (model.moe) {
    widths.push_back(model.moe->expert_ffn);
    if (model.moe->shared_experts > 0) {
      widths.push_back(model.moe->shared_experts * model.moe->shared_ffn);
    }
  }
  return widths;
}

Op collective(std::string name, CollectiveKind kind, TensorId in, TensorId out, const Op& served) {
  return {.name = std::move(name),
          .work = CollectiveWork{.kind = kind, .axes = {kTensor}},
          .reads = {in},
          .writes = {out},
          .stream = Stream::tensor_comm,
          .purpose = Purpose::tensor_parallel,
          .region = served.region};
}

/// Rewrites one body: an op that touches a cut weight or activation takes its between-blocks input gathered, and
/// leaves its between-blocks output as a partial sum that is scattered before the next op reads it.
class BodyPass {
 public:
  enum class Beside : std::uint8_t { nothing, products };  ///< what collectives run beside

  using Gathered = std::map<std::size_t, TensorId>;  ///< by what was gathered

  /// `kept` are those of a body before, which this one need not gather again.
  BodyPass(BlockTemplate& block, Body& body, Beside beside, Gathered kept)
      : block_(block), body_(body), beside_(beside), gathered_(std::move(kept)) {}

  void run() {
    for (Op& op : body_.ops) {
      const bool cut = touches_cut(op);
      cut ? gather_inputs(op) : scatter_inputs(op);
      std::vector<TensorId> handed_on;
      if (cut) {
        make_outputs_partial(op, handed_on);
      }
      out_.push_back(op);
      for (const TensorId id : handed_on) {
        scatter_port(id);
      }
      reduce_weight_gradients(out_.back());
    }
    body_.ops = std::move(out_);
  }

  [[nodiscard]] const Gathered& gathered() const { return gathered_; }

 private:
  Tensor& at(TensorId id) { return block_.tensor(id); }

  bool touches_cut(const Op& op) {
    const auto cut = [&](TensorId id) { return has_cut(at(id)); };
    return std::any_of(op.reads.begin(), op.reads.end(), cut) || std::any_of(op.writes.begin(), op.writes.end(), cut);
  }

  void gather_inputs(Op& op) {
    for (const TensorId id : std::vector<TensorId>(op.reads)) {
      if (!is_between(at(id)) || !at(id).rows()->split_by(kTensor)) {
        continue;
      }
      if (gathered_.count(id.index()) == 0) {
        Tensor full = like(at(id), at(id).name + "_gathered");
        remove_split(*full.rows(), kTensor);
        full.kind = MemoryKind::communication_buffers;
        const TensorId full_id = block_.add(std::move(full));
        out_.insert(out_.begin() + static_cast<std::ptrdiff_t>(place_of_gather(id)),
                    collective("gather_" + at(id).name, CollectiveKind::all_gather, id, full_id, op));
        gathered_[id.index()] = full_id;
      }
      replace_read(op, id, gathered_[id.index()]);
    }
  }

  /// A kept input is gathered again for its weight gradient in front of the products that give the input's gradient,
  /// and so beside them (Megatron-LM tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication).
  std::size_t place_of_gather(TensorId id) const {
    std::size_t place = out_.size();
    while (beside_ == Beside::products && place > 0 && std::holds_alternative<GemmWork>(out_[place - 1].work) &&
           !writes(out_[place - 1], id)) {
      --place;
    }
    return place;
  }

  void make_outputs_partial(Op& op, std::vector<TensorId>& handed_on) {
    for (const TensorId id : std::vector<TensorId>(op.writes)) {
      if (!is_between(at(id)) || !at(id).rows()->split_by(kTensor)) {
        continue;
      }
      if (at(id).port != Port::none) {
        // A port keeps its sharding; the op writes the partial sum beside it.
        Tensor sum = like(at(id), at(id).name + "_partial");
        remove_split(*sum.rows(), kTensor);
        sum.partial.insert(kTensor);
        const TensorId sum_id = block_.add(std::move(sum));
        replace_write(op, id, sum_id);
        port_of_[sum_id.index()] = id;
        handed_on.push_back(sum_id);
      } else {
        remove_split(*at(id).rows(), kTensor);
        at(id).partial.insert(kTensor);
      }
    }
  }

  void scatter_port(TensorId sum) {
    const TensorId port = port_of_[sum.index()];
    out_.push_back(collective("scatter_" + at(port).name, CollectiveKind::reduce_scatter, sum, port, out_.back()));
  }

  /// Partial sums that one op adds up are one tensor: the products add to it, as a fused QKV or gate-and-up product
  /// does in its accumulator. It is reduced and scattered once.
  void scatter_inputs(Op& op) {
    std::vector<std::vector<TensorId>> sums;  // those of one shape are added up
    for (const TensorId id : std::vector<TensorId>(op.reads)) {
      const auto known = scattered_.find(id.index());
      if (known != scattered_.end()) {
        replace_read(op, id, known->second);
        continue;
      }
      if (is_between(at(id)) && at(id).partial.contains(kTensor)) {
        const auto same = std::find_if(sums.begin(), sums.end(), [&](const std::vector<TensorId>& others) {
          return at(others.front()).shape == at(id).shape;
        });
        same == sums.end() ? sums.push_back({id}) : same->push_back(id);
      }
    }
    for (const std::vector<TensorId>& equal : sums) {
      scatter_sum(op, equal);
    }
  }

  void scatter_sum(Op& op, const std::vector<TensorId>& sums) {
    const TensorId sum = sums.front();
    // Right behind the op that completes the sum, so that it runs beside the weights' gradients (where the stack does).
    std::size_t place = out_.size();
    while (beside_ == Beside::products && place > 0 &&
           std::none_of(sums.begin(), sums.end(), [&](TensorId id) { return writes(out_[place - 1], id); })) {
      --place;
    }
    for (Op& made : out_) {
      for (const TensorId other : sums) {
        replace_write(made, other, sum);
      }
    }
    Tensor part = like(at(sum), at(sum).name + "_scattered");
    part.rows()->split.push_back(kTensor);
    part.partial.erase(kTensor);
    const TensorId part_id = block_.add(std::move(part));
    out_.insert(out_.begin() + static_cast<std::ptrdiff_t>(place),
                collective("scatter_" + at(sum).name, CollectiveKind::reduce_scatter, sum, part_id, {}));
    replace_read(op, sums.front(), part_id);
    for (const TensorId id : sums) {
      scattered_[id.index()] = part_id;
    }
    for (std::size_t i = 1; i < sums.size(); ++i) {
      std::erase(op.reads, sums[i]);
    }
  }

  /// Weights that are whole on every rank (norms) have seen this rank's tokens only: their gradients are summed.
  void reduce_weight_gradients(const Op& op) {
    const bool local_tokens = std::any_of(op.reads.begin(), op.reads.end(), [&](TensorId id) {
      const Extent* rows = at(id).rows();
      return rows != nullptr && rows->split_by(kTensor);
    });
    if (!local_tokens) {
      return;
    }
    for (const TensorId id : std::vector<TensorId>(op.writes)) {
      if (at(id).kind != MemoryKind::gradients || at(id).persistent) {
        continue;
      }
      const TensorId local = block_.add(like(at(id), at(id).name + "_local"));
      at(local).partial.insert(kTensor);
      replace_write(out_.back(), id, local);
      out_.push_back(collective("reduce_" + at(id).name, CollectiveKind::all_reduce, local, id, op));
      out_.back().purpose = Purpose::gradients;
    }
  }

  BlockTemplate& block_;
  Body& body_;
  Beside beside_;
  std::vector<Op> out_;
  Gathered gathered_;
  std::map<std::size_t, TensorId> scattered_;
  std::map<std::size_t, TensorId> port_of_;
};

/// Megatron tensor parallelism with its sequence parallelism.
class TensorParallel final : public Strategy {
 public:
  std::string name() const override { return "tensor"; }
  std::string summary() const override { return "Megatron tensor parallelism with sequence parallelism"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    std::vector<Infeasible> reasons;
    const Transformer& model = *context.model;
    const std::int64_t t = context.plan->mesh.size(kTensor);
    const std::int64_t data = context.plan->mesh.size(MeshAxis::data);
    if (t == 1) {
      return reasons;
    }
    const std::vector<std::int64_t> widths = ffn_widths(model);
    const auto divides_widths = [&](std::int64_t degree) {
      return std::all_of(widths.begin(), widths.end(), [degree](std::int64_t width) { return width % degree == 0; });
    };
    const auto legal = [&](std::int64_t degree) {
      return model.heads % degree == 0 && divides_widths(degree) &&
             (model.kv_heads % degree == 0 || degree % model.kv_heads == 0) &&
             context.plan->sequence_length % degree == 0;
    };
    std::int64_t best = t;
    while (best > 1 && (t % best != 0 || !legal(best))) {
      --best;
    }
    const std::string instead = with_data("tensor", best, data * t / best);
    if (model.heads % t != 0) {
      reasons.push_back({fmt::format("{} heads do not divide by tensor {}", model.heads, t),
                         {{"heads", static_cast<double>(model.heads)}, {"tensor", static_cast<double>(t)}},
                         instead});
    } else if (model.kv_heads % t != 0 && t % model.kv_heads != 0) {
      reasons.push_back({fmt::format("{} key/value heads and tensor {} do not divide one another", model.kv_heads, t),
                         {{"kv_heads", static_cast<double>(model.kv_heads)}, {"tensor", static_cast<double>(t)}},
                         instead});
    }
    for (const std::int64_t width : widths) {
      if (width % t != 0) {
        reasons.push_back({fmt::format("feed-forward width {} does not divide by tensor {}", width, t),
                           {{"ffn", static_cast<double>(width)}, {"tensor", static_cast<double>(t)}},
                           instead});
      }
    }
    return reasons;
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    const std::int64_t t = context.plan->mesh.size(kTensor);
    if (t == 1) {
      return;
    }
    for (BlockTemplate& block : graph.templates) {
      for (Tensor& tensor : block.tensors) {
        shard(tensor, t);
      }
      BodyPass::Gathered kept;
      for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
        const bool serial = phase == Phase::backward && context.framework->overlap_tensor_backward.value == 0;
        BodyPass pass(block, block.body(phase), serial ? BodyPass::Beside::nothing : BodyPass::Beside::products, kept);
        pass.run();
        if (phase == Phase::forward && context.framework->tensor_keeps_gathered.value != 0) {
          kept = pass.gathered();
          hold(block, kept);
        }
      }
      if (block.kind == BlockKind::head) {
        reduce_loss_statistics(block);
      } else if (block.kind == BlockKind::layer && overlaps_forward(context)) {
        overlap_forward(block, t);
      }
    }
  }

 private:
  /// What a product saves is no buffer.
  static void hold(BlockTemplate& block, const BodyPass::Gathered& kept) {
    for (const auto& [from, gathered] : kept) {
      block.tensor(gathered).kind = block.tensor(TensorId(from)).kind;
    }
  }

  /// Tiles, rounds and chunks call products of their own, which no collective runs beside.
  static bool overlaps_forward(const PlanContext& context) {
    const Plan& plan = *context.plan;
    return context.framework->overlap_tensor_forward.value != 0 && !plan.tiled_mlp && plan.head_chunks == 1 &&
           plan.sequence_chunks() == 1;
  }

  /// The loss over a cut vocabulary needs three numbers a token of all ranks: the largest logit, the label's, and the
  /// sum of exponentials, each all-reduced in fp32 (Megatron-LM core/tensor_parallel/cross_entropy.py).
  static void reduce_loss_statistics(BlockTemplate& block) {
    const auto is_loss = [](const Op& op) {
      return op.region == Region::loss && std::holds_alternative<ElementwiseWork>(op.work);
    };
    Body& forward = block.body(Phase::forward);
    Body& backward = block.body(Phase::backward);
    const auto loss = std::find_if(forward.ops.begin(), forward.ops.end(), is_loss);
    const auto loss_backward = std::find_if(backward.ops.begin(), backward.ops.end(), is_loss);
    if (loss == forward.ops.end() || loss_backward == backward.ops.end()) {
      return;
    }
    std::vector<Op> reductions;
    for (const char* name : {"largest_logit", "label_logit", "sum_of_exponentials"}) {
      Tensor local = like(block.tensor(loss->reads[0]), std::string(name) + "_local");
      std::erase_if(local.shape, [](const Extent& extent) { return extent.dim == Dim::vocab; });
      local.element_bytes = 4;
      local.partial.insert(kTensor);
      Tensor whole = like(local, name);
      whole.partial = {};
      const TensorId local_id = block.add(std::move(local));
      const TensorId whole_id = block.add(std::move(whole));
      loss->writes.push_back(local_id);
      loss_backward->reads.push_back(whole_id);
      reductions.push_back(
          collective(std::string("reduce_") + name, CollectiveKind::all_reduce, local_id, whole_id, *loss));
    }
    forward.ops.insert(loss + 1, reductions.begin(), reductions.end());
  }

  static void shard(Tensor& tensor, std::int64_t t) {
    for (Extent& extent : tensor.shape) {
      if (is_cut(extent.dim)) {
        if (extent.dim == Dim::kv_heads && extent.size < t) {
          // Fewer key/value heads than ranks: each rank keeps one, repeated.
          extent.replicas = t / extent.size;
          extent.size = t;
        }
        extent.split.insert(extent.split.begin(), kTensor);
      } else if (&extent == tensor.rows() && !has_cut(tensor)) {
        extent.split.push_back(kTensor);
      } else if (extent.dim == Dim::elements && tensor.kind == MemoryKind::optimizer_states) {
        extent.split.push_back(kTensor);
      }
    }
  }
};

}  // namespace

const Strategy& tensor_strategy() {
  static const TensorParallel strategy;
  return strategy;
}

}  // namespace ulysim::strategies
