#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/slice.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// Key/value heads of one tensor rank.
std::int64_t kv_heads_of(const PlanContext& context) {
  return std::max<std::int64_t>(1, context.model->kv_heads / context.plan->mesh.size(MeshAxis::tensor));
}

/// Of a rank of the tensor axis, its query heads taken `chunks` times: in how many parts its keys and values are then
/// used. UPipe's schedule for grouped heads: a round takes one query head of each of several groups, and all heads of
/// these groups come before the next keys do (arXiv 2602.21196, untied_ulysses/fully_fused_attn.py
/// upipe_attn_gqa_forward), so that keys and values are projected and sent once.
std::int64_t kv_parts(std::int64_t heads, std::int64_t kv_heads, std::int64_t chunks) {
  return std::max<std::int64_t>(1, kv_heads * chunks / heads);
}

/// Rewrites the attention of one block into rounds over the heads: projection, attention, and in backward the
/// gradients, of one part of the heads at a time. Backward makes queries, keys and values of its round again, so that
/// nothing but the block's input, the output and its statistics stays (UpipeAttnGQAFunc).
class BlockPass {
 public:
  BlockPass(BlockTemplate& block, std::int64_t rounds, std::int64_t kv_rounds)
      : block_(block), rounds_(rounds), each_(rounds / kv_rounds) {
    loop_ = {.name = "head_chunks", .trips = rounds, .dim = Dim::heads, .kv_trips = kv_rounds};
  }

  void run() {
    const std::size_t forward = find_attention(block_.body(Phase::forward));
    const std::size_t backward = find_attention(block_.body(Phase::backward));
    if (forward == block_.body(Phase::forward).ops.size()) {
      return;
    }
    makers_ = take(Phase::forward, makers_of_heads(block_, block_.body(Phase::forward), forward));
    rewrite_forward();
    if (backward < block_.body(Phase::backward).ops.size()) {
      read_what_backward_gathers();
      users_ = take(Phase::backward, users_of_heads(block_, block_.body(Phase::backward), backward));
      rewrite_backward();
    }
  }

 private:
  /// Takes ops out of a body.
  std::vector<Op> take(Phase phase, const std::vector<std::size_t>& positions) {
    std::vector<Op>& ops = block_.body(phase).ops;
    std::vector<Op> taken;
    std::vector<Op> left;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const bool mine = std::binary_search(positions.begin(), positions.end(), i);
      (mine ? taken : left).push_back(std::move(ops[i]));
    }
    ops = std::move(left);
    return taken;
  }

  std::int32_t open_loop(Phase phase) {
    Body& body = block_.body(phase);
    body.loops.push_back(loop_);
    return static_cast<std::int32_t>(body.loops.size() - 1);
  }

  /// The keys' part of `ops` for the group that round `round` begins, and the queries' part for the round.
  void add_round(const std::vector<Op>& ops, std::int64_t round, Dim heads, const std::string& what,
                 std::vector<Op>& out) {
    const bool keys = heads == Dim::kv_heads;
    const std::int64_t part = keys ? round / each_ : round;
    const std::string suffix = fmt::format("_{}{}", what, part);
    for (const Op& op : ops) {
      for (const Op& mine : share_of(block_, op, heads)) {
        out.push_back(part_of(block_, mine, at_, part, suffix, keys ? keys_ : queries_));
        out.back().recomputed = out.back().recomputed || again_;
      }
    }
  }

  void begin_round(std::int64_t round, const std::string& what, std::vector<Op>& out) {
    queries_.clear();
    if (round % each_ == 0) {
      keys_.clear();
      add_round(makers_, round, Dim::kv_heads, what + "kv", out);
    }
    add_round(makers_, round, Dim::heads, what, out);
  }

  /// The attention call of a round: tensors of the round where there are some, else its part of the whole ones.
  Op call(Op op, std::int64_t round, const std::string& suffix) {
    op.loop = at_;
    op.part = round;
    op.name += suffix;
    for (TensorId& id : op.reads) {
      const Renamed& own = holds(block_.tensor(id), Dim::heads) ? queries_ : keys_;
      const auto found = own.find(id.index());
      id = found == own.end() ? id : found->second;
    }
    return op;
  }

  void rewrite_forward() {
    Body& body = block_.body(Phase::forward);
    at_ = open_loop(Phase::forward);
    std::vector<Op> out;
    for (Op& op : body.ops) {
      if (!std::holds_alternative<AttentionWork>(op.work)) {
        out.push_back(std::move(op));
        continue;
      }
      for (std::int64_t round = 0; round < rounds_; ++round) {
        begin_round(round, "h", out);
        out.push_back(call(op, round, fmt::format("_h{}", round)));
      }
    }
    body.ops = std::move(out);
  }

  /// Where forward's projections read an input gathered over the tensor axis, backward's copies of them read its own
  /// gather.
  void read_what_backward_gathers() {
    for (const Op& gather : block_.body(Phase::forward).ops) {
      if (!is_collective(gather)) {
        continue;
      }
      for (const Op& other : block_.body(Phase::backward).ops) {
        if (is_collective(other) && other.reads == gather.reads) {
          for (Op& op : makers_) {
            replace_read(op, gather.writes[0], other.writes[0]);
          }
        }
      }
    }
  }

  void rewrite_backward() {
    Body& body = block_.body(Phase::backward);
    at_ = open_loop(Phase::backward);
    again_ = true;
    const std::size_t attention = find_attention(body);
    std::vector<Op> out(body.ops.begin(), body.ops.begin() + static_cast<std::ptrdiff_t>(attention));
    std::vector<Op> behind;
    for (std::size_t i = attention + 1; i < body.ops.size(); ++i) {
      (serves_a_round(body.ops[i]) ? out : behind).push_back(body.ops[i]);
    }
    const Op backward = body.ops[attention];
    for (std::int64_t round = 0; round < rounds_; ++round) {
      again_ = true;
      begin_round(round, "b", out);
      again_ = false;
      const std::string suffix = fmt::format("_b{}", round);
      Op op = call(backward, round, suffix);
      for (TensorId& id : op.writes) {
        const bool of_keys = holds(block_.tensor(id), Dim::kv_heads);
        id = own(id, of_keys ? keys_ : queries_, of_keys ? fmt::format("_bkv{}", round / each_) : suffix);
      }
      out.push_back(std::move(op));
      add_round(users_, round, Dim::heads, "b", out);
      if ((round + 1) % each_ == 0) {
        add_round(users_, round, Dim::kv_heads, "bkv", out);
      }
    }
    out.insert(out.end(), behind.begin(), behind.end());
    body.ops = std::move(out);
  }

  /// A tensor of the round (or of its keys) for what attention writes whole. The rounds of a group add to one gradient.
  TensorId own(TensorId id, Renamed& renamed, const std::string& suffix) {
    const auto found = renamed.find(id.index());
    if (found != renamed.end()) {
      return found->second;
    }
    Tensor tensor = like(block_.tensor(id), block_.tensor(id).name + suffix);
    tensor.loop = at_;
    const TensorId made = block_.add(std::move(tensor));
    renamed.emplace(id.index(), made);
    return made;
  }

  /// Whether an op behind attention only brings what the rounds read (the gather of a kept input).
  bool serves_a_round(const Op& op) const {
    const auto is_read = [&](TensorId id) {
      const auto by = [id](const Op& other) { return reads(other, id); };
      return std::any_of(users_.begin(), users_.end(), by) || std::any_of(makers_.begin(), makers_.end(), by);
    };
    return is_collective(op) && std::any_of(op.writes.begin(), op.writes.end(), is_read);
  }

  BlockTemplate& block_;
  std::int64_t rounds_;
  std::int64_t each_;  ///< rounds on the same keys
  Loop loop_{};
  std::int32_t at_{};
  bool again_{};
  std::vector<Op> makers_;
  std::vector<Op> users_;
  Renamed queries_;
  Renamed keys_;
};

/// Untied Ulysses: attention in rounds over parts of the heads, so that exchange buffers, queries, keys and values of
/// one part are alive at a time.
class HeadChunks final : public Strategy {
 public:
  std::string name() const override { return "head-chunks"; }
  std::string summary() const override { return "Untied Ulysses (UPipe): attention in rounds over parts of the heads"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    const Plan& plan = *context.plan;
    if (plan.head_chunks == 1) {
      return {};
    }
    if (plan.sequence_chunk) {
      return {{"head_chunks and sequence_chunk cut the same attention twice",
               {{"head_chunks", static_cast<double>(plan.head_chunks)},
                {"sequence_chunk", static_cast<double>(*plan.sequence_chunk)}},
               "head_chunks 1, or no sequence_chunk"}};
    }
    if (plan.recompute == Recompute::selective) {
      return {{"head_chunks makes queries, keys and values again already; selective recompute keeps them",
               {{"head_chunks", static_cast<double>(plan.head_chunks)}},
               "recompute: full, or none"}};
    }
    if (is_legal(context, plan.head_chunks)) {
      return {};
    }
    const std::int64_t t = plan.mesh.size(MeshAxis::tensor);
    const std::int64_t heads = context.model->heads / t;
    const std::int64_t p = plan.mesh.size(MeshAxis::ulysses);
    std::string legal;
    for (std::int64_t n = 1; n <= heads / p; ++n) {
      if (is_legal(context, n)) {
        legal += fmt::format("{}{}", legal.empty() ? "" : ", ", n);
      }
    }
    return {
        {fmt::format("{} query and {} key/value heads{} over ulysses {} do not divide into {} rounds", heads,
                     kv_heads_of(context), t > 1 ? fmt::format(" of each of tensor {}", t) : "", p, plan.head_chunks),
         {{"heads", static_cast<double>(heads)},
          {"kv_heads", static_cast<double>(kv_heads_of(context))},
          {"ulysses", static_cast<double>(p)},
          {"head_chunks", static_cast<double>(plan.head_chunks)}},
         legal.empty() ? "head_chunks 1" : fmt::format("head_chunks of {}", legal)}};
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    const std::int64_t rounds = context.plan->head_chunks;
    if (rounds == 1) {
      return;
    }
    const std::int64_t heads = context.model->heads / graph.mesh.size(MeshAxis::tensor);
    for (BlockTemplate& block : graph.templates) {
      if (block.kind == BlockKind::layer) {
        BlockPass(block, rounds, kv_parts(heads, kv_heads_of(context), rounds)).run();
      }
    }
  }

 private:
  /// Every rank gets equally many query heads in every round, and so many key/value heads that these share them.
  static bool is_legal(const PlanContext& context, std::int64_t chunks) {
    const Mesh& mesh = context.plan->mesh;
    const std::int64_t p = mesh.size(MeshAxis::ulysses);
    const std::int64_t heads = context.model->heads / mesh.size(MeshAxis::tensor);
    const std::int64_t kv_heads = kv_heads_of(context);
    if (heads < chunks || heads % chunks != 0 || heads / chunks % p != 0) {
      return false;
    }
    const std::int64_t of_round = heads / chunks;
    return of_round <= kv_heads ? kv_heads % of_round == 0 : of_round % std::max(kv_heads, p) == 0;
  }
};

}  // namespace

const Strategy& head_chunks_strategy() {
  static const HeadChunks strategy;
  return strategy;
}

}  // namespace ulysim::strategies
