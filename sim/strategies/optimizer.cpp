#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/check.h"
#include "sim/strategies/optimizer_bytes.h"
#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"
#include "sim/strategies/zero_parts.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

constexpr int kNewtonSchulzSteps = 5;  // KellerJordan/Muon muon.py, Megatron-LM --muon-num-ns-steps

/// Matrices of one shape as one rank's states cut them up.
struct Shape {
  std::int64_t rows{};     ///< the shorter side
  std::int64_t columns{};  ///< the longer one
  AxisSet shared{};        ///< ranks that hold the shards of each between them
  friend bool operator<(const Shape& a, const Shape& b) {
    return std::tuple(a.rows, a.columns, a.shared.bits()) < std::tuple(b.rows, b.columns, b.shared.bits());
  }
};

/// Muon (Keller Jordan 2024, github.com/KellerJordan/Muon): the momentum of every matrix of a layer is orthogonalised
/// by Newton–Schulz, which needs it whole. Where states are sharded, all-to-alls bring whole matrices together, each
/// to one rank, and their shards back (microsoft/dion, dion/muon.py). Under tensor parallelism each rank takes its own
/// block (Megatron-LM --muon-tp-mode blockwise, the default).
class MuonPass {
 public:
  MuonPass(const OpGraph& graph, BlockTemplate& block, std::int64_t stage)
      : graph_(graph), block_(block), stage_(stage) {}

  void run() {
    std::vector<Op> ops;
    for (const auto& [shape, count] : matrices()) {
      orthogonalise(shape, count, ops);
    }
    Body& update = block_.body(Phase::update);
    const auto inserted = static_cast<std::uint32_t>(ops.size());
    update.ops.insert(update.ops.begin() + 1, std::make_move_iterator(ops.begin()), std::make_move_iterator(ops.end()));
    if (inserted == 0) {
      return;
    }
    for (std::size_t i = 1 + inserted; i < update.ops.size(); ++i) {
      // What hands the weights on waits for the last of them.
      update.ops[i].after.emplace_back(inserted);
    }
  }

 private:
  /// How many of each shape a rank's model part has.
  [[nodiscard]] std::map<Shape, std::int64_t> matrices() const {
    std::map<Shape, std::int64_t> out;
    for (const BlockTemplate& block : graph_.templates) {
      for (const Tensor& tensor : block.tensors) {
        if (block.kind != BlockKind::layer || !is_matrix(tensor) || tensor.frozen) {
          continue;
        }
        std::int64_t count = block.instances;
        std::vector<std::int64_t> sides;
        for (Extent extent : tensor.shape) {
          const AxisSet cuts = sharing_of(graph_.mesh, tensor).shard;
          std::erase_if(extent.split, [cuts](MeshAxis axis) { return cuts.contains(axis); });
          const std::int64_t size = local_size(extent, graph_.mesh);
          if (extent.dim == Dim::experts) {
            count *= size;
          } else {
            sides.push_back(size);
          }
        }
        // [in, out] where one side may be several dimensions: heads × head size behind or before hidden.
        const bool last_alone = tensor.shape.back().dim == Dim::hidden;
        const std::int64_t one = last_alone ? sides.back() : sides.front();
        const std::int64_t other =
            std::accumulate(sides.begin(), sides.end(), std::int64_t{1}, std::multiplies<>()) / one;
        const AxisSet shared = stage_ == 0 ? AxisSet{} : sharing_of(graph_.mesh, tensor).shard;
        out[{.rows = std::min(one, other), .columns = std::max(one, other), .shared = shared}] += count;
      }
    }
    return out;
  }

  [[nodiscard]] static std::vector<MeshAxis> split_of(AxisSet axes) {
    Tensor tensor{.shape = {Extent{}}};
    shard(tensor, axes);
    return tensor.shape.front().split;
  }

  void orthogonalise(const Shape& shape, std::int64_t count, std::vector<Op>& ops) {
    const std::string suffix =
        fmt::format("_{}x{}{}", shape.rows, shape.columns, tag_++ == 0 ? "" : fmt::format("_{}", tag_));
    const std::vector<MeshAxis> split = split_of(shape.shared);
    const Extent matrices{.dim = Dim::matrices, .size = count, .split = split};
    const Extent rows{.dim = Dim::rows, .size = shape.rows};
    const Extent gram{.dim = Dim::gram, .size = shape.rows};
    const Extent columns{.dim = Dim::columns, .size = shape.columns};
    const auto add = [&](const std::string& name, std::vector<Extent> extents) {
      return block_.add({.name = name + suffix, .shape = std::move(extents), .kind = MemoryKind::optimizer_states});
    };
    const TensorId whole = add("momentum", {matrices, rows, columns});
    Op& momentum = block_.body(Phase::update).ops.front();
    TensorId part = whole;
    if (!split.empty()) {
      Extent all = matrices;
      all.split.clear();
      Extent cut = rows;
      cut.split = split;
      part = add("momentum_shards", {all, cut, columns});
      ops.push_back(
          {.name = "collect" + suffix,
           .work =
               CollectiveWork{
                   .kind = CollectiveKind::all_to_all, .axes = shape.shared, .from = Dim::rows, .to = Dim::matrices},
           .reads = {part},
           .writes = {whole},
           .stream = Stream::zero_reduce,
           .purpose = Purpose::parameters});
    }
    momentum.writes.push_back(part);
    const TensorId done = iterate(shape, count, suffix, {matrices, rows, gram, columns}, ops, whole);
    TensorId update = done;
    if (!split.empty()) {
      update = block_.add(like(block_.tensor(part), "update_shards" + suffix));
      ops.push_back(
          {.name = "hand_back" + suffix,
           .work =
               CollectiveWork{
                   .kind = CollectiveKind::all_to_all, .axes = shape.shared, .from = Dim::matrices, .to = Dim::rows},
           .reads = {done},
           .writes = {update},
           .stream = Stream::zero_reduce,
           .purpose = Purpose::parameters});
    }
    ops.push_back({.name = "apply" + suffix,
                   .work = ElementwiseWork{.traffic = {{update, 2.0}}, .launches = 1},
                   .reads = {update},
                   .purpose = Purpose::optimizer});
  }

  /// X ← aX + (bA + cA²)X with A = XXᵀ: 4·rows²·columns + 2·rows³ FLOPs a step, one matrix after the other.
  TensorId iterate(const Shape& shape, std::int64_t count, const std::string& suffix, const std::array<Extent, 4>& dims,
                   std::vector<Op>& ops, TensorId whole) {
    const auto& [matrices, rows, gram, columns] = dims;
    const auto loop = static_cast<std::int32_t>(block_.body(Phase::update).loops.size());
    const std::int64_t ranks = graph_.mesh.size(shape.shared);
    block_.body(Phase::update)
        .loops.push_back(
            {.name = "newton_schulz" + suffix, .trips = (count + ranks - 1) / ranks, .dim = Dim::matrices});
    const auto add = [&](const std::string& name, std::vector<Extent> extents, std::int32_t in) {
      return block_.add(
          {.name = name + suffix, .shape = std::move(extents), .kind = MemoryKind::optimizer_states, .loop = in});
    };
    const auto product = [&](const std::string& name, TensorId a, TensorId b, TensorId c, GemmWork work) {
      work.groups = {Dim::matrices};
      ops.push_back({.name = name + suffix,
                     .work = std::move(work),
                     .reads = {a, b},
                     .writes = {c},
                     .purpose = Purpose::optimizer,
                     .loop = loop});
    };
    const auto view = [&](const std::string& name, std::vector<TensorId> from, TensorId to) {
      ops.push_back({.name = name + suffix,
                     .work = ElementwiseWork{.launches = 0},
                     .reads = std::move(from),
                     .writes = {to},
                     .purpose = Purpose::optimizer,
                     .loop = loop});
    };
    Extent square = columns;
    square.size = shape.rows;
    const TensorId done = add("orthogonal", {matrices, rows, columns}, -1);
    TensorId x = whole;
    for (int step = 0; step < kNewtonSchulzSteps; ++step) {
      const auto named = [step](const char* name) { return fmt::format("{}{}", name, step); };
      const TensorId turned = add(named("x_turned"), {matrices, gram, columns}, loop);
      const TensorId a = add(named("a"), {matrices, rows, gram}, loop);
      const TensorId a_turned = add(named("a_turned"), {matrices, gram, square}, loop);
      const TensorId squared = add(named("a_squared"), {matrices, rows, square}, loop);
      const TensorId polynomial = add(named("polynomial"), {matrices, rows, gram}, loop);
      const bool last = step + 1 == kNewtonSchulzSteps;
      const TensorId next = last ? done : add(named("x_after"), {matrices, rows, columns}, loop);
      view(named("turn_x"), {x}, turned);
      product(named("x_xt"), x, turned, a, {.m = {Dim::rows}, .n = {Dim::gram}, .k = {Dim::columns}});
      view(named("turn_a"), {a}, a_turned);
      product(named("a_a"), a, a_turned, squared, {.m = {Dim::rows}, .n = {Dim::columns}, .k = {Dim::gram}});
      view(named("add_a"), {a, squared}, polynomial);  // fused into the product
      product(named("b_x"), polynomial, turned, next, {.m = {Dim::rows}, .n = {Dim::columns}, .k = {Dim::gram}});
      x = next;
    }
    return done;
  }

  const OpGraph& graph_;
  BlockTemplate& block_;
  std::int64_t stage_;
  int tag_{};
};

/// What the optimizer's step needs beside the states that ZeRO has cut up.
class OptimizerStep final : public Strategy {
 public:
  std::string name() const override { return "optimizer"; }
  std::string summary() const override { return "the optimizer's transients; Muon's whole matrices"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    return reasons_against(*context.framework, *context.plan);
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    for (std::size_t i = 0; i < graph.templates.size(); ++i) {
      if (graph.templates[i].kind != BlockKind::optimizer) {
        continue;
      }
      cut_transients(*context.framework, graph.mesh, graph.templates[i]);
      if (context.plan->optimizer == Optimizer::muon) {
        MuonPass(graph, graph.templates[i], context.plan->zero).run();
      }
    }
  }

 private:
  /// Transients are of what the rank updates at once, and no more than it has.
  static void cut_transients(const spec::Framework& framework, const Mesh& mesh, BlockTemplate& block) {
    std::int64_t elements = 0;
    for (const Tensor& tensor : block.tensors) {
      elements += tensor.kind == MemoryKind::optimizer_states ? local_elements(tensor, mesh) : 0;
    }
    for (const TensorId id : block.body(Phase::update).ops.front().scratch) {
      block.tensor(id).find(Dim::elements)->size = std::min(elements, framework.optimizer_chunk_elements.value);
    }
  }
};

}  // namespace

const Strategy& optimizer_strategy() {
  static const OptimizerStep strategy;
  return strategy;
}

}  // namespace ulysim::strategies
