#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Tokens that one rank's compute op of `region` works on.
std::int64_t local_tokens(const OpGraph& graph, const BlockTemplate& block, const Body& body, Region region) {
  for (const Op& op : body.ops) {
    if (op.region == region && std::holds_alternative<GemmWork>(op.work)) {
      const Tensor& x = block.tensor(op.reads[0]);
      return local_size(*x.find(Dim::batch), graph.mesh) * local_size(*x.find(Dim::tokens), graph.mesh);
    }
  }
  return 0;
}

/// Opens a loop over the compute ops of `region` in `body`; gathers that serve the region move before it. Tensors that
/// only the loop touches live for one trip. Requires the region's ops to stand together.
void make_loop(BlockTemplate& block, Body& body, Region region, const char* name, std::int64_t trips) {
  const auto in_region = [region](const Op& op) { return op.region == region; };
  const auto first = std::find_if(body.ops.begin(), body.ops.end(), in_region);
  auto end = std::find_if(body.ops.rbegin(), body.ops.rend(), in_region).base();
  // What brings inputs moves before the loop, what takes results away behind it.
  const auto produced = [first, end](const Op& op) {
    return std::any_of(op.reads.begin(), op.reads.end(), [&](TensorId id) {
      return std::any_of(first, end, [id](const Op& other) { return !is_collective(other) && writes(other, id); });
    });
  };
  const std::vector<Op> before(first, end);
  std::vector<int> place;
  for (auto op = first; op != end; ++op) {
    const bool inside = op->region == region && !is_collective(*op);
    place.push_back(inside ? 1 : produced(*op) ? 2 : 0);
  }
  auto next = first;
  for (const int part : {0, 1, 2}) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (place[i] == part) {
        *next++ = before[i];
      }
    }
  }
  const auto compute = first + std::count(place.begin(), place.end(), 0);
  end = compute + std::count(place.begin(), place.end(), 1);
  const auto loop = static_cast<std::int32_t>(body.loops.size());
  body.loops.push_back({.name = name, .trips = trips});
  std::vector<int> inside(block.tensors.size(), 0);
  std::vector<int> outside(block.tensors.size(), 0);
  for (Body& other : block.bodies) {
    for (Op& op : other.ops) {
      const bool looped = &other == &body && &op >= &*compute && &op < &*compute + (end - compute);
      if (looped) {
        op.loop = loop;
      }
      for (const auto* list : {&op.reads, &op.writes}) {
        for (const TensorId id : *list) {
          ++(looped ? inside : outside)[id.index()];
        }
      }
    }
  }
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    Tensor& tensor = block.tensors[i];
    if (inside[i] > 0 && outside[i] == 0 && tensor.find(Dim::tokens) != nullptr && tensor.port == Port::none) {
      tensor.loop = loop;
    }
  }
  // The number of tiles is agreed on with a blocking read (ALST, TiledMLP: .item() in every call).
  compute->drains = true;
}

/// MLP and loss computed in tiles of the sequence (ALST, arXiv 2506.13996 §3.1): backward repeats the forward of each
/// tile, so only the input stays.
class Tiling final : public Strategy {
 public:
  std::string name() const override { return "tiling"; }
  std::string summary() const override { return "tiled MLP and tiled loss (ALST): one tile's activations at a time"; }

  std::vector<Infeasible> check(const PlanContext&) const override { return {}; }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    for (BlockTemplate& block : graph.templates) {
      const bool tiled = context.plan->tiled_mlp || context.plan->sequence_chunks() > 1;
      if (tiled && block.kind == BlockKind::layer) {
        tile_mlp(context, graph, block);
      }
      if (context.plan->tiled_loss && block.kind == BlockKind::head) {
        tile_loss(context, graph, block);
      }
    }
  }

 private:
  static void tile_mlp(const PlanContext& context, const OpGraph& graph, BlockTemplate& block) {
    Body& forward = block.body(Phase::forward);
    Body& backward = block.body(Phase::backward);
    // FPDT takes half of an attention chunk at a time (Megatron-DeepSpeed model/transformer.py, fpdt_FFN_chunk_size).
    const std::int64_t chunks = context.plan->sequence_chunks();
    const std::int64_t tokens = local_tokens(graph, block, forward, Region::mlp);
    const std::int64_t trips = chunks > 1 ? std::min(tokens, 2 * chunks) : ceil_div(tokens, context.model->hidden);
    if (trips <= 1) {
      return;
    }
    repeat_forward(block, forward, backward);
    make_loop(block, forward, Region::mlp, "mlp_tiles", trips);
    make_loop(block, backward, Region::mlp, "mlp_tiles", trips);
  }

  /// Clones the MLP's compute ops in front of its backward, on tensors of their own.
  static void repeat_forward(BlockTemplate& block, const Body& forward, Body& backward) {
    std::map<std::size_t, TensorId> again;
    std::vector<Op> clones;
    for (Op op : forward.ops) {
      if (op.region != Region::mlp || is_collective(op)) {
        continue;
      }
      op.recomputed = true;
      op.name += "_tile";
      for (const TensorId id : std::vector<TensorId>(op.reads)) {
        const auto clone = again.find(id.index());
        if (clone != again.end()) {
          replace_read(op, id, clone->second);
        }
      }
      for (const TensorId id : std::vector<TensorId>(op.writes)) {
        const TensorId clone = block.add(like(block.tensor(id), block.tensor(id).name + "_tile"));
        replace_write(op, id, clone);
        again[id.index()] = clone;
      }
      clones.push_back(std::move(op));
    }
    gather_in_backward(block, forward, backward, clones);
    for (Op& op : backward.ops) {
      for (const TensorId id : std::vector<TensorId>(op.reads)) {
        const auto clone = again.find(id.index());
        if (clone != again.end()) {
          replace_read(op, id, clone->second);
        }
      }
    }
    const auto first =
        std::find_if(backward.ops.begin(), backward.ops.end(), [](const Op& op) { return op.region == Region::mlp; });
    backward.ops.insert(first, clones.begin(), clones.end());
  }

  /// Where the forward reads an input gathered over the tensor axis, the clones read backward's own gather of it.
  static void gather_in_backward(const BlockTemplate& block, const Body& forward, const Body& backward,
                                 std::vector<Op>& clones) {
    for (const Op& gather : forward.ops) {
      if (gather.region != Region::mlp || !is_collective(gather) ||
          std::get<CollectiveWork>(gather.work).kind != CollectiveKind::all_gather) {
        continue;
      }
      for (const Op& other : backward.ops) {
        if (is_collective(other) && std::get<CollectiveWork>(other.work).kind == CollectiveKind::all_gather &&
            other.reads == gather.reads && block.tensor(gather.reads[0]).port == Port::none) {
          for (Op& clone : clones) {
            replace_read(clone, gather.writes[0], other.writes[0]);
          }
        }
      }
    }
  }

  /// Small sums over the ranks that share a vocabulary, a part of them in each tile: made of all tiles at once, behind
  /// the loop.
  static void reduce_behind_loop(Body& forward) {
    for (const Op& reduction : forward.ops) {
      const auto* work = std::get_if<CollectiveWork>(&reduction.work);
      if (work == nullptr || work->kind != CollectiveKind::all_reduce || reduction.region != Region::loss) {
        continue;
      }
      for (Op& op : forward.ops) {
        std::erase(op.reads, reduction.writes[0]);
      }
    }
  }

  /// Logits, loss and their gradients tile by tile, all in the forward pass (ALST, TiledFusedLogitsLoss).
  static void tile_loss(const PlanContext& context, const OpGraph& graph, BlockTemplate& block) {
    Body& forward = block.body(Phase::forward);
    Body& backward = block.body(Phase::backward);
    const std::int64_t tokens = local_tokens(graph, block, forward, Region::loss);
    const std::int64_t tile = context.framework->loss_tile_bytes.value.value();
    const std::int64_t vocab = context.model->vocab / context.plan->mesh.size(MeshAxis::tensor);
    const std::int64_t trips = std::max<std::int64_t>(1, ceil_div(4 * tokens * vocab, tile));
    std::vector<Op> kept;
    std::vector<Op> moved;
    for (Op& op : backward.ops) {
      (op.region == Region::loss ? moved : kept).push_back(op);
    }
    for (Op& op : moved) {
      if (!is_collective(op)) {
        forward.ops.push_back(op);
        continue;
      }
      // Forward has gathered the same input already.
      const auto same = std::find_if(forward.ops.begin(), forward.ops.end(),
                                     [&](const Op& other) { return is_collective(other) && other.reads == op.reads; });
      if (same == forward.ops.end()) {
        forward.ops.push_back(op);
        continue;
      }
      for (Op& later : moved) {
        replace_read(later, op.writes[0], same->writes[0]);
      }
    }
    backward.ops = std::move(kept);
    if (trips > 1) {
      reduce_behind_loop(forward);
      make_loop(block, forward, Region::loss, "loss_tiles", trips);
    }
  }
};

}  // namespace

const Strategy& tiling_strategy() {
  static const Tiling strategy;
  return strategy;
}

}  // namespace ulysim::strategies
