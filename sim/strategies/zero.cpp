#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "sim/base/check.h"
#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// The ranks that share states: data × sequence, as DeepSpeed does (engine.py, seq_data_parallel_group).
AxisSet sharding_axes(const Mesh& mesh) {
  return mesh.without_trivial({MeshAxis::data, MeshAxis::ring, MeshAxis::ulysses});
}

/// The ranks that hold the same copy of a parameter, its gradient or its states: those share it. Experts that expert
/// parallelism has placed are the same only across expert groups (DeepSpeed utils/groups.py, expert data parallel
/// group).
AxisSet sharing_axes(const Mesh& mesh, const Tensor& tensor) {
  return is_placed_by_expert(tensor) ? mesh.without_trivial({MeshAxis::expert_data}) : sharding_axes(mesh);
}

/// Cuts the first dimension of a weight over `axes`; which one does not matter to its bytes.
void shard(Tensor& tensor, AxisSet axes) {
  for (const MeshAxis axis : {MeshAxis::data, MeshAxis::ring, MeshAxis::ulysses, MeshAxis::expert_data}) {
    if (axes.contains(axis)) {
      tensor.shape.front().split.push_back(axis);
    }
  }
}

class BlockPass {
 public:
  BlockPass(OpGraph& graph, BlockTemplate& block, const PlanContext& context)
      : mesh_(graph.mesh),
        block_(block),
        framework_(*context.framework),
        stage_(context.plan->zero),
        sequence_parallel_(mesh_.size(AxisSet{MeshAxis::ulysses, MeshAxis::ring}) > 1) {}

  void run() {
    if (stage_ >= 3) {
      shard_parameters();
    }
    for (Body& body : block_.bodies) {
      if (stage_ >= 3) {
        gather_parameters(body);
      }
      reduce_gradients(body);
    }
  }

 private:
  Tensor& at(TensorId id) { return block_.tensor(id); }

  /// Tensors under the persistence threshold are never cut.
  void shard_parameters() {
    for (std::size_t i = 0; i < block_.tensors.size(); ++i) {
      Tensor& tensor = block_.tensors[i];
      const AxisSet axes = sharing_axes(mesh_, tensor);
      if (tensor.parameter && !axes.empty() && global_elements(tensor) > framework_.persistence_elements.value) {
        whole_.emplace(i, tensor);
        shard(tensor, axes);
        block_elements_ += global_elements(tensor) / (is_placed_by_expert(tensor) ? mesh_.expert : 1);
      }
    }
  }

  /// One gather for each unit (the weights of the MLP; of the experts; the others) before its first reader. Backward
  /// reuses what recompute gathered, unless the block exceeds the reuse distance.
  void gather_parameters(Body& body) {
    const bool twice = block_elements_ > framework_.reuse_distance_elements.value;
    using Unit = std::pair<int, bool>;  // position in kUnits, for recompute
    constexpr std::array kUnits{"", "_mlp", "_experts"};
    std::map<Unit, std::vector<std::size_t>> readers;
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      const Op& op = body.ops[i];
      if (std::any_of(op.reads.begin(), op.reads.end(), [&](TensorId id) { return whole_.count(id.index()) != 0; })) {
        const int kind = op.region == Region::mlp ? 1 : op.region == Region::experts ? 2 : 0;
        readers[{kind, twice && op.recomputed && op.loop < 0}].push_back(i);
      }
    }
    std::map<std::size_t, std::vector<Op>> before;
    for (const auto& [unit, ops] : readers) {
      Op gather = gather_unit(
          body, ops,
          fmt::format("gather{}{}", kUnits.at(static_cast<std::size_t>(unit.first)), unit.second ? "_again" : ""));
      release_after(body, ops.back());
      std::size_t place = ops.front();
      while (place > 0 && body.ops[place].loop >= 0 && !body.ops[place].part &&
             body.ops[place - 1].loop == body.ops[place].loop) {
        --place;
      }
      before[place].push_back(std::move(gather));
    }
    std::vector<Op> out;
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      const auto gathers = before.find(i);
      if (gathers != before.end()) {
        out.insert(out.end(), gathers->second.begin(), gathers->second.end());
      }
      out.push_back(std::move(body.ops[i]));
    }
    body.ops = std::move(out);
  }

  /// The credit ends with the last reader, or with the next kernel where that one returns another pool's already.
  static void release_after(Body& body, std::size_t last_reader) {
    for (std::size_t i = last_reader; i < body.ops.size(); ++i) {
      if (body.ops[i].stream == Stream::compute && body.ops[i].release == CreditPool::none) {
        body.ops[i].release = CreditPool::parameters;
        return;
      }
    }
    ULYSIM_CHECK(false, "no op after {} can return its credit", body.ops[last_reader].name);
  }

  Op gather_unit(Body& body, const std::vector<std::size_t>& ops, const std::string& name) {
    Op gather{.name = name,
              .work = CollectiveWork{.kind = CollectiveKind::all_gather},
              .stream = Stream::zero_gather,
              .purpose = Purpose::parameters,
              .acquire = CreditPool::parameters};
    std::map<std::size_t, TensorId> gathered;
    std::int64_t elements = 0;
    for (const std::size_t i : ops) {
      for (const TensorId id : std::vector<TensorId>(body.ops[i].reads)) {
        const auto whole = whole_.find(id.index());
        if (whole == whole_.end()) {
          continue;
        }
        if (gathered.count(id.index()) == 0) {
          Tensor full = like(whole->second, fmt::format("{}_{}_{}", whole->second.name, name, ++gathers_));
          full.kind = MemoryKind::gathered_parameters;
          full.element_bytes = full.gathered_bytes.value_or(full.element_bytes);
          std::get<CollectiveWork>(gather.work).axes = sharing_axes(mesh_, full);
          elements += local_elements(full, mesh_);
          gathered[id.index()] = block_.add(std::move(full));
          gather.reads.push_back(id);
          gather.writes.push_back(gathered[id.index()]);
        }
        replace_read(body.ops[i], id, gathered[id.index()]);
      }
    }
    add_copies(gather, elements, name);
    return gather;
  }

  /// The flat receive buffer stays beside the tensors that are copied out of it while a unit is gathered.
  void add_copies(Op& gather, std::int64_t elements, const std::string& name) {
    const double extra = framework_.gather_copies.value - 1.0;
    if (extra <= 0) {
      return;
    }
    const auto size = static_cast<std::int64_t>(extra * static_cast<double>(elements));
    buffers_.emplace_back(block_.add({.name = name + fmt::format("_buffer_{}", gathers_),
                                      .shape = {{.dim = Dim::elements, .size = size}},
                                      .kind = MemoryKind::communication_buffers}));
    gather.scratch.push_back(buffers_.back());
  }

  /// Where gradients are accumulated: stages 2 and 3 scatter every micro-batch's, stages 0 and 1 reduce the
  /// accumulated ones once, at the last micro-batch.
  void reduce_gradients(Body& body) {
    std::vector<Op> out;
    for (Op& op : body.ops) {
      const bool accumulates = !op.writes.empty() && at(op.writes[0]).persistent &&
                               at(op.writes[0]).kind == MemoryKind::gradients &&
                               std::holds_alternative<ElementwiseWork>(op.work);
      if (!accumulates) {
        out.push_back(std::move(op));
        continue;
      }
      const AxisSet axes = sharing_axes(mesh_, at(op.writes[0]));
      if (axes.empty()) {
        out.push_back(std::move(op));  // each rank has experts that no other has
      } else if (stage_ >= 2) {
        scatter_before(op, axes, out);
        out.push_back(std::move(op));
      } else {
        out.push_back(op);
        reduce_after(op, axes, out);
      }
    }
    body.ops = std::move(out);
  }

  [[nodiscard]] std::int64_t wire_bytes() const {
    return static_cast<std::int64_t>(sequence_parallel_ ? framework_.sequence_parallel_gradient_wire_bytes.value
                                                        : framework_.gradient_wire_bytes.value);
  }

  /// The gradient as it travels; `cast` makes it where its type is another.
  TensorId on_the_wire(TensorId id, Op& cast) {
    const std::int64_t wire = wire_bytes();
    if (wire == at(id).element_bytes) {
      return id;
    }
    Tensor other = like(at(id), at(id).name + "_wire");
    other.element_bytes = wire;
    other.kind = MemoryKind::gradients;
    const TensorId sent = block_.add(std::move(other));
    cast.reads.push_back(id);
    cast.writes.push_back(sent);
    std::get<ElementwiseWork>(cast.work).traffic.push_back({id, static_cast<double>(at(id).element_bytes + wire)});
    return sent;
  }

  /// All of it on the reduction's own stream, so that backward goes on (DeepSpeed stage3.py,
  /// reduce_and_partition_stream; FSDP's post-backward stream).
  void scatter_before(Op& op, AxisSet axes, std::vector<Op>& out) {
    Op scatter = reduction("scatter_" + op.name, CollectiveKind::reduce_scatter, axes);
    Op cast{.name = "cast_" + op.name,
            .work = ElementwiseWork{.launches = 1},
            .stream = Stream::zero_reduce,
            .region = op.region};
    op.stream = Stream::zero_reduce;
    for (const TensorId id : std::vector<TensorId>(op.reads)) {
      const TensorId sent = on_the_wire(id, cast);
      Tensor part = like(at(sent), at(id).name + "_shard");
      shard(part, axes);
      part.partial = {};
      const TensorId part_id = block_.add(std::move(part));
      scatter.reads.push_back(sent);
      scatter.writes.push_back(part_id);
      replace_read(op, id, part_id);
    }
    for (const TensorId id : op.writes) {
      shard(at(id), axes);
      at(id).partial = {};
    }
    if (!cast.reads.empty()) {
      out.push_back(std::move(cast));
    }
    out.push_back(std::move(scatter));
  }

  void reduce_after(const Op& op, AxisSet axes, std::vector<Op>& out) {
    Op reduce =
        reduction("reduce_" + op.name, stage_ == 1 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, axes);
    reduce.when = When::last_micro_batch;
    Op cast{.name = "cast_" + op.name, .work = ElementwiseWork{.launches = 1}, .when = When::last_micro_batch};
    for (const TensorId id : op.writes) {
      Tensor reduced = at(id);
      reduced.name += "_reduced";
      reduced.partial = {};
      reduced.shared = true;  // in place: the accumulated gradient's own storage
      if (stage_ == 1) {
        shard(reduced, axes);
      }
      reduce.writes.push_back(block_.add(std::move(reduced)));
      reduce.reads.push_back(on_the_wire(id, cast));
    }
    if (!cast.reads.empty()) {
      out.push_back(std::move(cast));
    }
    out.push_back(std::move(reduce));
  }

  static Op reduction(const std::string& name, CollectiveKind kind, AxisSet axes) {
    return {.name = name,
            .work = CollectiveWork{.kind = kind, .axes = axes},
            .stream = Stream::zero_reduce,
            .purpose = Purpose::gradients};
  }

  const Mesh& mesh_;
  BlockTemplate& block_;
  const spec::Framework& framework_;
  std::int64_t stage_;
  bool sequence_parallel_;
  std::map<std::size_t, Tensor> whole_;
  std::vector<TensorId> buffers_;
  std::int64_t block_elements_{};
  int gathers_{};
};

/// ZeRO (arXiv 1910.02054): optimizer states, gradients and parameters sharded over data × sequence ranks.
class Zero final : public Strategy {
 public:
  std::string name() const override { return "zero"; }
  std::string summary() const override { return "ZeRO 0–3: states, gradients, parameters sharded; gathers prefetched"; }

  std::vector<Infeasible> check(const PlanContext&) const override { return {}; }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (sharding_axes(graph.mesh).empty()) {
      return;
    }
    for (BlockTemplate& block : graph.templates) {
      if (block.kind == BlockKind::optimizer) {
        shard_optimizer(context, graph, block);
      } else {
        BlockPass(graph, block, context).run();
      }
    }
    // The unit in use and those that may be fetched ahead of it; never fewer than a body holds at once.
    graph.credit_windows[static_cast<std::size_t>(CreditPool::parameters)] =
        std::max(1 + context.framework->prefetch_units.value, most_held_at_once(graph));
  }

 private:
  static std::int64_t most_held_at_once(const OpGraph& graph) {
    std::int64_t most = 1;
    for (const BlockTemplate& block : graph.templates) {
      for (const Body& body : block.bodies) {
        std::int64_t held = 0;
        for (const Op& op : body.ops) {
          held += op.acquire == CreditPool::parameters ? 1 : 0;
          most = std::max(most, held);
          held -= op.release == CreditPool::parameters ? 1 : 0;
        }
      }
    }
    return most;
  }

  static void shard_optimizer(const PlanContext& context, const OpGraph& graph, BlockTemplate& block) {
    if (context.plan->zero == 0) {
      return;
    }
    std::vector<Tensor> wholes;
    for (Tensor& tensor : block.tensors) {
      const AxisSet axes = sharing_axes(graph.mesh, tensor);
      if (tensor.kind == MemoryKind::optimizer_states && !axes.empty()) {
        wholes.push_back(tensor);
        shard(tensor, axes);
      }
    }
    if (context.plan->zero == 3) {
      return;
    }
    // Stages 1 and 2 hand the updated weights to everybody, in place.
    for (Tensor& weights : wholes) {
      const bool experts = weights.find(Dim::experts) != nullptr;
      const AxisSet axes = sharing_axes(graph.mesh, weights);
      weights.name = experts ? "updated_experts" : "updated_weights";
      weights.kind = MemoryKind::weights;
      weights.element_bytes = 2;
      weights.shared = true;
      weights.space = Space::gpu;
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
};

}  // namespace

const Strategy& zero_strategy() {
  static const Zero strategy;
  return strategy;
}

}  // namespace ulysim::strategies
