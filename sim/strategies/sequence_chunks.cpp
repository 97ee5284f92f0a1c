#include <fmt/format.h>

#include <algorithm>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/slice.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

constexpr std::size_t kGpuBuffers = 2;  ///< chunks fetched: one in use, one on its way (double buffering)
constexpr std::int64_t kMostChunks = 256;

/// Tensors in the order in which attention names them.
using Ids = std::vector<TensorId>;

/// Rewrites the attention of one block into chunks of tokens (FPDT, arXiv 2408.16978; DeepSpeed
/// sequence/fpdt_layer.py, _FPDTGPUOffloadingAttentionImpl_). Forward, chunk by chunk: projections, exchange, attention
/// to the keys of each past chunk, fetched back from host memory, and to its own; output back. What backward needs of
/// a chunk waits in host memory. Backward goes by chunks of keys, and for each through the queries that see them.
///
/// The steps of one chunk do equal work, but for the one on the diagonal, and each fetches for the next: they are
/// written as a first fetch, then all fetches but that beside all attention but the last, then the last attention. That
/// takes as long as the steps one by one.
class BlockPass {
 public:
  BlockPass(BlockTemplate& block, std::int64_t chunks, const spec::Framework& framework)
      : block_(block), chunks_(chunks), framework_(framework) {}

  void run() {
    const std::size_t forward = find_attention(block_.body(Phase::forward));
    if (forward == block_.body(Phase::forward).ops.size()) {
      return;
    }
    begin(Phase::forward, forward);
    rewrite_forward();
    const std::size_t backward = find_attention(block_.body(Phase::backward));
    if (backward < block_.body(Phase::backward).ops.size()) {
      begin(Phase::backward, backward);
      rewrite_backward();
    }
  }

 private:
  Tensor& at(TensorId id) { return block_.tensor(id); }

  [[nodiscard]] bool recasts(const Op& op) {
    const Tensor& from = at(op.reads[0]);
    const Tensor& to = at(op.writes[0]);
    return std::holds_alternative<ElementwiseWork>(op.work) &&
           (from.element_bytes != to.element_bytes || from.block_elements != to.block_elements);
  }

  /// Takes the attention of a body apart: what stays before it, the ops that serve it, and what comes behind.
  void begin(Phase phase, std::size_t attention) {
    Body& body = block_.body(phase);
    const bool forward = phase == Phase::forward;
    makers_.clear();
    users_.clear();
    before_.clear();
    behind_.clear();
    const std::vector<std::size_t> makers = makers_of_heads(block_, body, attention);
    const std::vector<std::size_t> users = users_of_heads(block_, body, attention);
    call_ = body.ops[attention];
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      const Op& op = body.ops[i];
      const bool product = std::holds_alternative<GemmWork>(op.work) || (forward && recasts(op));
      // The output's projection, with a cast for it, and the gradient that comes through it are of the whole sequence.
      const bool makes = std::binary_search(makers.begin(), makers.end(), i) && (forward || !product);
      const bool uses = std::binary_search(users.begin(), users.end(), i) && (!forward || !product);
      if (makes) {
        makers_.push_back(op);
      } else if (uses) {
        users_.push_back(op);
      } else if (i != attention) {
        (i < attention ? before_ : behind_).push_back(op);
      }
    }
    const std::vector<Op> inputs = take_inputs_of(users_, behind_);
    before_.insert(before_.end(), inputs.begin(), inputs.end());
    body.loops.push_back({.name = "sequence_chunks", .trips = chunks_});
    loop_ = static_cast<std::int32_t>(body.loops.size() - 1);
    out_ = std::move(before_);
  }

  void end(Phase phase) {
    out_.insert(out_.end(), behind_.begin(), behind_.end());
    block_.body(phase).ops = std::move(out_);
    out_.clear();
  }

  TensorId chunk_like(TensorId model, const std::string& name) {
    Tensor tensor = like(at(model), name);
    tensor.loop = loop_;
    return block_.add(std::move(tensor));
  }
  TensorId chunk_like(TensorId model, const std::string& name, std::int64_t bytes) {
    const TensorId id = chunk_like(model, name);
    at(id).element_bytes = bytes;
    return id;
  }
  TensorId on_host(TensorId model, std::int64_t bytes) {
    Tensor tensor = like(at(model), at(model).name + "_host");
    tensor.space = Space::host;
    tensor.element_bytes = bytes;
    return block_.add(std::move(tensor));
  }

  struct Run {
    std::int64_t part{};
    std::int64_t repeats{1};
  };

  Op& add(Op op, const Run& run) {
    op.loop = loop_;
    op.part = run.part;
    op.repeats = run.repeats;
    op.region = call_.region;
    out_.push_back(std::move(op));
    return out_.back();
  }

  Op& copy(const std::string& name, Ids from, Ids to, Stream stream, const Run& run) {
    return add({.name = name,
                .work = CopyWork{.buffer = CopyWork::Buffer::pinned},
                .reads = std::move(from),
                .writes = std::move(to),
                .stream = stream,
                .purpose = Purpose::checkpoint_offload},
               run);
  }
  void store(const std::string& name, Ids from, Ids to, const Run& run) {
    copy(name, std::move(from), std::move(to), Stream::device_to_host, run);
  }
  /// Copies of chunks of `host` in GPU memory; waits until one of the buffers is free.
  Ids fetch(const std::string& name, const Ids& host, const Run& run) {
    Ids here;
    for (const TensorId id : host) {
      here.push_back(chunk_like(id, fmt::format("{}_{}", at(id).name, name)));
      at(here.back()).space = Space::gpu;
    }
    copy(name, host, here, Stream::host_to_device, run).acquire = CreditPool::chunk_fetch;
    return here;
  }

  Op& elementwise(const std::string& name, Ids from, Ids to, std::vector<Traffic> traffic, const Run& run) {
    return add({.name = name,
                .work = ElementwiseWork{.traffic = std::move(traffic), .launches = framework_.ring_merge_kernels.value},
                .reads = std::move(from),
                .writes = std::move(to)},
               run);
  }

  /// A call on one chunk of queries and one of keys, or on several such with equal work.
  Op& attend(const std::string& name, Ids from, Ids to, AttentionWork::Chunks chunks, const Run& run) {
    Op op = call_;
    op.name = name;
    op.reads = std::move(from);
    op.writes = std::move(to);
    std::get<AttentionWork>(op.work).chunks = chunks;
    op.drains = true;  // compute_stream.synchronize() in every step
    return add(std::move(op), run);
  }

  void add_parts(const std::vector<Op>& ops, std::int64_t chunk, const char* what, Renamed& renamed) {
    for (const Op& op : ops) {
      out_.push_back(part_of(block_, op, loop_, chunk, fmt::format("_{}{}", what, chunk), renamed));
    }
  }

  /// What backward reads beside attention's own inputs (of norms of queries and keys): the chunks are parts of one
  /// tensor, which stays on the GPU.
  [[nodiscard]] Renamed left_whole() const {
    Renamed whole;
    for (const Op& maker : makers_) {
      for (const TensorId id : maker.writes) {
        const auto& later = block_.body(Phase::backward).ops;
        const bool kept = std::any_of(later.begin(), later.end(), [id](const Op& op) {
          return !std::holds_alternative<AttentionWork>(op.work) && reads(op, id);
        });
        if (kept) {
          whole.emplace(id.index(), id);
        }
      }
    }
    return whole;
  }

  static TensorId named(const Renamed& renamed, TensorId id) {
    const auto found = renamed.find(id.index());
    return found == renamed.end() ? id : found->second;
  }

  void rewrite_forward() {
    const TensorId o = call_.writes[0];
    const TensorId lse = call_.writes[1];
    keys_ = {on_host(call_.reads[1], at(call_.reads[1]).element_bytes),
             on_host(call_.reads[2], at(call_.reads[2]).element_bytes)};
    queries_ = {on_host(call_.reads[0], at(call_.reads[0]).element_bytes), on_host(o, at(o).element_bytes),
                on_host(lse, at(lse).element_bytes)};
    for (std::int64_t i = 0; i < chunks_; ++i) {
      Renamed renamed = left_whole();
      fetch_past(i);
      add_parts(makers_, i, "c", renamed);
      const Ids own{named(renamed, call_.reads[0]), named(renamed, call_.reads[1]), named(renamed, call_.reads[2])};
      store(fmt::format("store_qkv_{}", i), own, {queries_[0], keys_[0], keys_[1]}, {.part = i});
      attend_past(i, own[0]);
      step_forward(i, "own", {own[0], own[1], own[2]}, {.query = i, .key = i}, 1);
      const bool direct = users_.empty();
      const TensorId o_chunk = direct ? o : chunk_like(o, fmt::format("{}_c{}", at(o).name, i));
      elementwise(fmt::format("finish_o_{}", i), {sum_}, {o_chunk}, {{sum_, 6.0}}, {.part = i});
      store(fmt::format("store_o_{}", i), {o_chunk, lse_}, {queries_[1], queries_[2]}, {.part = i});
      renamed[o.index()] = o_chunk;
      if (!direct) {
        // The output of the whole sequence gathers the chunks'.
        const TensorId whole = users_.back().writes[0];
        renamed[whole.index()] = whole;
        add_parts(users_, i, "c", renamed);
      }
      summed_ = false;
    }
    end(Phase::forward);
  }

  /// Keys of the chunks before `i`, on their way while the chunk before ends and this one is projected.
  void fetch_past(std::int64_t i) {
    if (i > 0) {
      first_ = fetch(fmt::format("fetch_kv_{}", i), keys_, {.part = 0});
    }
    if (i > 1) {
      rest_ = fetch(fmt::format("fetch_kv_{}_rest", i), keys_, {.part = 1, .repeats = i - 1});
    }
  }

  /// Attention of chunk `i` to the keys of all before it.
  void attend_past(std::int64_t i, TensorId q) {
    if (i == 0) {
      return;
    }
    if (i > 1) {
      step_forward(i, "past", {q, first_[0], first_[1]}, {.query = i, .key = 0}, i - 1);
    }
    const Ids& keys = i > 1 ? rest_ : first_;
    step_forward(i, "last", {q, keys[0], keys[1]}, {.query = i, .key = i - 1}, 1);
  }

  void step_forward(std::int64_t i, const char* what, Ids from, AttentionWork::Chunks chunks, std::int64_t repeats) {
    const Run run{.part = i, .repeats = repeats};
    const std::string suffix = fmt::format("_{}_{}", i, what);
    const TensorId o = chunk_like(call_.writes[0], at(call_.writes[0]).name + suffix);
    const TensorId lse = chunk_like(call_.writes[1], at(call_.writes[1]).name + suffix);
    Op& call = attend(call_.name + suffix, std::move(from), {o, lse}, chunks, run);
    if (chunks.key != chunks.query) {
      call.release.insert(CreditPool::chunk_fetch);
    }
    Ids merged{o, lse};
    if (summed_) {
      merged.insert(merged.end(), {sum_, lse_});
    } else {
      sum_ = chunk_like(call_.writes[0], fmt::format("o_sum_{}", i), 4);
      lse_ = chunk_like(call_.writes[1], fmt::format("lse_sum_{}", i));
      summed_ = true;
    }
    elementwise("merge" + suffix, merged, {sum_, lse_}, {{o, framework_.ring_merge_forward.value}}, run);
  }

  void rewrite_backward() {
    const TensorId d_q = call_.writes[0];
    d_outputs_ = on_host(call_.reads[5], at(call_.reads[5]).element_bytes);
    d_queries_ = on_host(d_q, 4);
    for (std::int64_t i = 0; i < chunks_; ++i) {
      Renamed renamed;
      add_parts(makers_, i, "d", renamed);
      store(fmt::format("store_d_o_{}", i), {named(renamed, call_.reads[5])}, {d_outputs_}, {.part = i});
    }
    for (std::int64_t j = 0; j < chunks_; ++j) {
      const Ids keys = fetch(fmt::format("fetch_kv_backward_{}", j), keys_, {.part = j});
      out_.back().acquire = CreditPool::none;  // the keys stay beside the two buffers of queries
      d_keys_ = {chunk_like(call_.writes[1], fmt::format("d_k_sum_{}", j), 4),
                 chunk_like(call_.writes[2], fmt::format("d_v_sum_{}", j), 4)};
      summed_ = false;
      const TensorId d_q_sum =
          step_backward(j, "own", keys, fetch_queries(j, "own", {.part = j}), {.query = j, .key = j}, 1);
      attend_later(j, keys);
      hand_on(j, d_q_sum);
    }
    end(Phase::backward);
  }

  /// Queries, their output, statistics, and the gradients of both so far.
  Ids fetch_queries(std::int64_t j, const char* what, const Run& run) {
    Ids host = queries_;
    host.push_back(d_outputs_);
    if (j > 0) {
      host.push_back(d_queries_);
    }
    return fetch(fmt::format("fetch_q_{}_{}", j, what), host, run);
  }

  /// Of chunk `j` of keys: the queries of all chunks behind it.
  void attend_later(std::int64_t j, const Ids& keys) {
    const std::int64_t later = chunks_ - 1 - j;
    if (later == 0) {
      return;
    }
    Ids first = fetch_queries(j, "first", {.part = j + 1});
    if (later > 1) {
      const Ids rest = fetch_queries(j, "rest", {.part = j + 2, .repeats = later - 1});
      step_backward(j, "later", keys, first, {.query = j + 1, .key = j}, later - 1);
      first = rest;
    }
    step_backward(j, "last", keys, first, {.query = chunks_ - 1, .key = j}, 1);
  }

  /// Returns the queries' gradient as far as it is summed.
  TensorId step_backward(std::int64_t j, const char* what, const Ids& keys, const Ids& queries,
                         AttentionWork::Chunks chunks, std::int64_t repeats) {
    const Run run{.part = chunks.query, .repeats = repeats};
    const std::string suffix = fmt::format("_{}_{}", j, what);
    Ids made;
    for (const TensorId id : call_.writes) {
      made.push_back(chunk_like(id, at(id).name + suffix));
    }
    Op& call = attend(call_.name + suffix, {queries[0], keys[0], keys[1], queries[1], queries[2], queries[3]}, made,
                      chunks, run);
    call.release.insert(CreditPool::chunk_fetch);
    const TensorId sum = chunk_like(call_.writes[0], "d_q_sum" + suffix, 4);
    Ids merged{made[0], made[1], made[2]};
    if (j > 0) {
      merged.push_back(queries[4]);
    }
    if (summed_) {
      merged.insert(merged.end(), d_keys_.begin(), d_keys_.end());
    }
    summed_ = true;
    const double merge = framework_.ring_merge_backward.value;
    elementwise("merge" + suffix, merged, {sum, d_keys_[0], d_keys_[1]},
                {{made[0], merge}, {made[1], merge}, {made[2], merge}}, run);
    if (chunks.query != chunks.key) {
      store("store_d_q" + suffix, {sum}, {d_queries_}, run);
    }
    return sum;
  }

  /// The gradients of chunk `j` are whole: exchange, rotation, projections.
  void hand_on(std::int64_t j, TensorId d_q_sum) {
    Renamed renamed;
    const Ids sums{d_q_sum, d_keys_[0], d_keys_[1]};
    Ids finished;
    std::vector<Traffic> traffic;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const TensorId whole = call_.writes[i];
      finished.push_back(chunk_like(whole, fmt::format("{}_f{}", at(whole).name, j)));
      renamed[whole.index()] = finished.back();
      traffic.push_back({sums[i], 6.0});
    }
    elementwise(fmt::format("finish_gradients_{}", j), sums, finished, traffic, {.part = j});
    add_parts(users_, j, "g", renamed);
  }

  BlockTemplate& block_;
  std::int64_t chunks_;
  const spec::Framework& framework_;
  std::int32_t loop_{};
  Op call_{};  ///< the attention call as it stood
  std::vector<Op> makers_, users_, before_, behind_, out_;
  Ids keys_, queries_;  ///< in host memory: K and V; Q, O and statistics
  TensorId d_outputs_{}, d_queries_{};
  Ids first_, rest_;  ///< keys and values of past chunks, fetched
  Ids d_keys_;        ///< of the chunk of keys in work, in fp32
  TensorId sum_{}, lse_{};
  bool summed_{};
};

class SequenceChunks final : public Strategy {
 public:
  std::string name() const override { return "sequence-chunks"; }
  std::string summary() const override {
    return "FPDT: attention in chunks of tokens; keys, values and queries of the others in host memory";
  }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    const Plan& plan = *context.plan;
    std::vector<Infeasible> reasons;
    if (!plan.sequence_chunk || plan.sequence_length <= *plan.sequence_chunk) {
      return reasons;
    }
    const std::int64_t chunk = *plan.sequence_chunk;
    const std::int64_t sequence = plan.sequence_length;
    const std::int64_t parts = plan.mesh.size(AxisSet{MeshAxis::tensor, MeshAxis::ulysses});
    const auto refuse = [&](std::string text, std::string instead) {
      reasons.push_back(
          {std::move(text),
           {{"sequence_chunk", static_cast<double>(chunk)}, {"sequence_length", static_cast<double>(sequence)}},
           std::move(instead)});
    };
    if (sequence % chunk != 0) {
      const std::int64_t below = sequence / chunk * chunk;
      refuse(fmt::format("{} tokens are no multiple of sequence_chunk {}", sequence, chunk),
             fmt::format("pad to {} tokens, or cut to {}", below + chunk, below));
    } else if (chunk % parts != 0) {
      refuse(fmt::format("sequence_chunk {} does not divide into {} equal parts (tensor · ulysses)", chunk, parts),
             fmt::format("sequence_chunk {}", (chunk + parts - 1) / parts * parts));
    } else if (sequence / chunk > kMostChunks) {
      refuse(fmt::format("{} chunks of {} tokens; at most {} are simulated", sequence / chunk, chunk, kMostChunks),
             fmt::format("sequence_chunk {}", sequence / kMostChunks));
    }
    if (plan.mesh.size(MeshAxis::ring) > 1) {
      refuse(fmt::format("sequence_chunk and ring {} cut the same attention twice", plan.mesh.size(MeshAxis::ring)),
             "ulysses instead of ring");
    }
    if (!is_plain_causal(context)) {
      refuse("sequence_chunk goes from chunk to chunk under a plain causal mask only", "no sequence_chunk");
    }
    if (plan.recompute == Recompute::selective || plan.recompute == Recompute::full_keep_attention) {
      refuse("sequence_chunk keeps what backward needs of attention in host memory or makes all of it again",
             "recompute: full, or none");
    }
    return reasons;
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    const std::int64_t chunks = context.plan->sequence_chunks();
    if (chunks == 1) {
      return;
    }
    graph.credit_windows[static_cast<std::size_t>(CreditPool::chunk_fetch)] = kGpuBuffers;
    for (BlockTemplate& block : graph.templates) {
      if (block.kind == BlockKind::layer) {
        BlockPass(block, chunks, *context.framework).run();
      }
    }
  }

 private:
  static bool is_plain_causal(const PlanContext& context) {
    const Plan& plan = *context.plan;
    return plan.mask == Mask::Kind::causal && !plan.sliding_window && !plan.block_sparse && !plan.documents &&
           std::none_of(context.model->layer_specs.begin(), context.model->layer_specs.end(),
                        [](const LayerSpec& layer) { return layer.sliding_window || layer.chunk; });
  }
};

}  // namespace

const Strategy& sequence_chunks_strategy() {
  static const SequenceChunks strategy;
  return strategy;
}

}  // namespace ulysim::strategies
