#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

constexpr MeshAxis kUlysses = MeshAxis::ulysses;

Dim head_dim_of(const Tensor& tensor) {
  return tensor.find(Dim::heads) != nullptr ? Dim::heads : Dim::kv_heads;
}

/// Puts all-to-alls around the attention calls of one block (DeepSpeed-Ulysses, arXiv 2309.14509 §3.1): outside,
/// tokens are split; inside, heads are.
class BlockPass {
 public:
  BlockPass(OpGraph& graph, BlockTemplate& block, const spec::Framework& framework)
      : mesh_(graph.mesh), block_(block), framework_(framework) {}

  void run() {
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      Body& body = block_.body(phase);
      out_.clear();
      backward_ = phase == Phase::backward;
      count_writers(body);
      for (Op& op : body.ops) {
        if (std::holds_alternative<AttentionWork>(op.work)) {
          wrap(op);
        } else {
          out_.push_back(op);
        }
      }
      body.ops = std::move(out_);
    }
  }

 private:
  Tensor& at(TensorId id) { return block_.tensor(id); }

  /// Rounds over parts of the heads may add to one gradient, which goes back once, when it is whole.
  void count_writers(const Body& body) {
    writers_.clear();
    for (const Op& op : body.ops) {
      if (std::holds_alternative<AttentionWork>(op.work)) {
        for (const TensorId id : op.writes) {
          ++writers_[id.index()];
        }
      }
    }
  }

  void wrap(Op op) {
    constexpr std::size_t kGradient = 5;  // of the output, behind what forward had
    const bool direct = framework_.output_exchange_copies.value == 1;
    for (std::size_t i = 0; i < op.reads.size(); ++i) {
      again_ = op.part && backward_ && i < kGradient;
      direct_ = direct && i == kGradient;
      op.reads[i] = by_heads(op.reads[i], op);
    }
    again_ = false;
    direct_ = direct && !backward_;
    std::vector<std::pair<TensorId, TensorId>> back;
    for (TensorId& id : op.writes) {
      const bool known = by_heads_.count(id.index()) != 0;
      if (known && by_heads_.at(id.index()) == id) {
        continue;
      }
      if (!known && only_attention_uses(id)) {
        to_head_sharding(at(id));
        by_heads_[id.index()] = id;
        continue;
      }
      const bool last = --writers_[id.index()] == 0;
      const TensorId outside = id;
      id = known && !is_part_of_whole(op, id) ? by_heads_.at(id.index()) : inside_of(id, replicated(id), op);
      if (last || is_part_of_whole(op, outside)) {
        back.emplace_back(outside, id);
      }
    }
    out_.push_back(op);
    for (const auto& [outside, inside] : back) {
      send_back(outside, inside, op);
    }
  }

  /// Whether a round over a part of the heads works on its part of a tensor that is there whole: the part is exchanged
  /// for the round alone.
  bool is_part_of_whole(const Op& op, TensorId id) { return op.part && at(id).loop < 0; }

  /// The head-sharded form of `source`, whose tokens form is `id`.
  TensorId inside_of(TensorId id, const Tensor& source, const Op& op) {
    const bool part = is_part_of_whole(op, id);
    Tensor inside =
        head_sharded(source, part ? fmt::format("{}_heads_{}", at(id).name, op.name) : at(id).name + "_heads");
    inside.loop = part ? op.loop : inside.loop;
    const TensorId made = block_.add(std::move(inside));
    if (!part) {
      by_heads_[id.index()] = made;
    }
    return made;
  }

  /// The head-sharded form of a tensor that attention reads; made once, and kept from forward to backward.
  TensorId by_heads(TensorId id, const Op& op) {
    const auto known = by_heads_.find(id.index());
    if (known != by_heads_.end()) {
      return known->second;
    }
    TensorId source = id;
    const Tensor wide = replicated(id);
    if (wide.shape != at(id).shape) {
      // DeepSpeed repeats K and V to one head a rank before the all-to-all (ulysses_sp.py, UlyssesSPAttentionHF).
      source = block_.add(wide);
      out_.push_back(elementwise("repeat_" + at(id).name, id, source, 2.0, op));
      out_.back().work = ElementwiseWork{.traffic = {{id, 2.0}, {source, 2.0}}, .launches = 1};
    }
    const Tensor whole = at(source);
    const TensorId inside = inside_of(id, whole, op);
    exchange(source, inside, Dim::tokens, head_dim_of(at(id)), op);
    return inside;
  }

  void send_back(TensorId outside, TensorId inside, const Op& op) {
    const Tensor wide = replicated(outside);
    if (wide.shape == at(outside).shape) {
      exchange(inside, outside, head_dim_of(at(outside)), Dim::tokens, op);
      return;
    }
    Tensor named = wide;
    named.name = at(outside).name + "_repeated";
    const TensorId source = block_.add(named);
    exchange(inside, source, head_dim_of(at(outside)), Dim::tokens, op);
    out_.push_back(elementwise("sum_" + at(outside).name, source, outside, 2.0, op));
    out_.back().work = ElementwiseWork{.traffic = {{source, 2.0}, {outside, 2.0}}, .launches = 1};
  }

  /// pack, all-to-all, unpack; one after the other, since the stream waits for each. The attention output may cross
  /// as it is: split over heads, its tokens lie in the order of the ranks that they go to.
  void exchange(TensorId from, TensorId to, Dim from_dim, Dim to_dim, const Op& op) {
    const double pack = framework_.all_to_all_pack.value;
    const std::string name = is_part_of_whole(op, from) ? at(from).name + "_" + op.name : at(from).name;
    const bool packs = !direct_ || from_dim == Dim::tokens;
    const bool unpacks = !direct_ || to_dim == Dim::tokens;
    const TensorId sent = packs ? block_.add(buffer(like(at(from), name + "_send"), op)) : from;
    const TensorId received = unpacks ? block_.add(buffer(like(at(to), name + "_received"), op)) : to;
    for (const TensorId id : {sent, received}) {
      at(id).recorded = framework_.records_exchange_buffers.value != 0;
    }
    if (packs) {
      out_.push_back(elementwise("pack_" + name, from, sent, pack, op));
    }
    out_.push_back(
        {.name = "all_to_all_" + name,
         .work = CollectiveWork{.kind = CollectiveKind::all_to_all, .axes = {kUlysses}, .from = from_dim, .to = to_dim},
         .reads = {sent},
         .writes = {received},
         .stream = Stream::ulysses_comm,
         .purpose = Purpose::ulysses,
         .region = op.region,
         .loop = op.loop,
         .part = op.part,
         .recomputed = again_});
    if (unpacks) {
      out_.push_back(elementwise("unpack_" + name, received, to, pack, op));
    }
  }

  Op elementwise(std::string name, TensorId from, TensorId to, double bytes, const Op& op) const {
    return {.name = std::move(name),
            .work = ElementwiseWork{.traffic = {{from, bytes}}, .launches = framework_.pack_kernels.value},
            .reads = {from},
            .writes = {to},
            .region = op.region,
            .loop = op.loop,
            .part = op.part,
            .recomputed = again_};
  }

  static Tensor buffer(Tensor tensor, const Op& op) {
    tensor.kind = MemoryKind::communication_buffers;
    tensor.loop = op.loop;
    return tensor;
  }

  /// With at least one key/value head for each rank.
  Tensor replicated(TensorId id) {
    Tensor wide = like(at(id), at(id).name + "_repeated");
    if (Extent* kv = wide.find(Dim::kv_heads)) {
      const std::int64_t local = local_size(*kv, mesh_);
      const std::int64_t p = mesh_.size(kUlysses);
      const std::int64_t copies = local < p ? p / local : 1;
      kv->size *= copies;
      kv->replicas *= copies;
    }
    return wide;
  }

  static Tensor head_sharded(Tensor tensor, std::string name) {
    tensor.name = std::move(name);
    to_head_sharding(tensor);
    return tensor;
  }

  static void to_head_sharding(Tensor& tensor) {
    remove_split(*tensor.find(Dim::tokens), kUlysses);
    tensor.find(head_dim_of(tensor))->split.push_back(kUlysses);
  }

  /// Statistics and workspaces never leave attention: they are head-sharded from the start.
  bool only_attention_uses(TensorId id) const {
    for (const Body& body : block_.bodies) {
      for (const Op& op : body.ops) {
        if (!std::holds_alternative<AttentionWork>(op.work) && (reads(op, id) || writes(op, id))) {
          return false;
        }
      }
    }
    return true;
  }

  const Mesh& mesh_;
  BlockTemplate& block_;
  const spec::Framework& framework_;
  std::vector<Op> out_;
  std::map<std::size_t, TensorId> by_heads_;
  std::map<std::size_t, std::int64_t> writers_;  ///< attention calls of the body that are still to write a tensor
  bool backward_{};
  bool direct_{};  ///< the tensor in hand is the attention output or its gradient, and is not copied on the head side
  bool again_{};   ///< backward's rounds exchange once more what forward did
};

class Ulysses final : public Strategy {
 public:
  std::string name() const override { return "ulysses"; }
  std::string summary() const override { return "DeepSpeed-Ulysses: all-to-all between token and head sharding"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    std::vector<Infeasible> reasons;
    const Transformer& model = *context.model;
    const Mesh& mesh = context.plan->mesh;
    const std::int64_t p = mesh.size(kUlysses);
    if (p == 1) {
      return reasons;
    }
    const std::int64_t t = mesh.size(MeshAxis::tensor);
    const std::int64_t heads = model.heads / t;
    const std::int64_t kv_heads = std::max<std::int64_t>(model.kv_heads / t, 1);
    const std::string of_tensor = t > 1 ? fmt::format(" of each of tensor {}", t) : "";
    const auto legal = [&](std::int64_t degree) {
      return heads % degree == 0 && (kv_heads % degree == 0 || degree % kv_heads == 0);
    };
    if (legal(p)) {
      return reasons;
    }
    std::int64_t best = p;
    while (best > 1 && (p % best != 0 || !legal(best))) {
      --best;
    }
    const std::string instead =
        fmt::format("{}, or ring {}", with_data("ulysses", best, mesh.size(MeshAxis::data) * p / best),
                    mesh.size(MeshAxis::ring) * p);
    const std::string problem =
        heads % p != 0
            ? fmt::format("{} heads{} do not divide by ulysses {}", heads, of_tensor, p)
            : fmt::format("{} key/value heads{} and ulysses {} do not divide one another", kv_heads, of_tensor, p);
    reasons.push_back({problem,
                       {{"heads", static_cast<double>(heads)},
                        {"kv_heads", static_cast<double>(kv_heads)},
                        {"ulysses", static_cast<double>(p)}},
                       instead});
    return reasons;
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (graph.mesh.size(kUlysses) == 1) {
      return;
    }
    split_samples(graph, Dim::tokens, kUlysses);
    for (BlockTemplate& block : graph.templates) {
      BlockPass(graph, block, *context.framework).run();
    }
  }
};

}  // namespace

const Strategy& ulysses_strategy() {
  static const Ulysses strategy;
  return strategy;
}

}  // namespace ulysim::strategies
