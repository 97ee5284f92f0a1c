#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

const Op* first_gemm(const Body& body, Region region) {
  const auto found = std::find_if(body.ops.begin(), body.ops.end(), [region](const Op& op) {
    return op.region == region && std::holds_alternative<GemmWork>(op.work);
  });
  return found == body.ops.end() ? nullptr : &*found;
}

/// Tokens that one rank's compute op of `region` works on.
std::int64_t local_tokens(const OpGraph& graph, const BlockTemplate& block, const Body& body, Region region) {
  const Op* gemm = first_gemm(body, region);
  if (gemm == nullptr) {
    return 0;
  }
  const Tensor& x = block.tensor(gemm->reads[0]);
  return local_size(*x.find(Dim::batch), graph.mesh) * local_size(*x.find(Dim::tokens), graph.mesh);
}

std::int64_t power_of_two_from(std::int64_t least) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
}

/// Tiles of the loss over `tokens` of this rank with `vocabulary` logits each.
std::int64_t loss_tiles(const spec::Framework& framework, std::int64_t tokens, std::int64_t vocabulary,
                        std::int64_t hidden) {
  std::int64_t tile = tokens;
  switch (framework.loss_tiling.value) {
    case spec::LossTiling::bytes:
      return std::max<std::int64_t>(1, ceil_div(4 * tokens * vocabulary, framework.loss_tile_bytes.value.value()));
    case spec::LossTiling::tokens:
      tile = framework.loss_tile_tokens->value;
      break;
    case spec::LossTiling::hidden:
      tile = power_of_two_from(ceil_div(tokens, ceil_div(vocabulary, hidden)));
      break;
    case spec::LossTiling::count:
      tile = ceil_div(tokens, framework.loss_tiles->value);
      break;
  }
  return ceil_div(tokens, tile);
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
  const auto is_inside = [region](const Op& op) { return op.region == region && !is_collective(op); };
  const auto read_by = [](const Op& op, const Op& reader) {
    return std::any_of(op.writes.begin(), op.writes.end(), [&reader](TensorId id) { return reads(reader, id); });
  };
  const std::vector<Op> before(first, end);
  std::vector<int> place(before.size());
  for (std::size_t i = before.size(); i-- > 0;) {
    const Op& op = before[i];
    bool feeds = false;  // a collective that feeds the loop, and what leads to it
    for (std::size_t later = i + 1; later < before.size(); ++later) {
      const bool wanted = is_collective(op) ? place[later] == 1 : place[later] == 0;
      feeds = feeds || (wanted && read_by(op, before[later]));
    }
    place[i] = is_inside(op) ? (feeds ? 0 : 1) : (produced(op) && !feeds ? 2 : 0);
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

/// Where the forward reads an input gathered over the tensor axis, the clones read backward's own gather of it.
void gather_in_backward(const BlockTemplate& block, const Body& forward, const Body& backward, Region region,
                        std::vector<Op>& clones) {
  for (const Op& gather : forward.ops) {
    if (gather.region != region || !is_collective(gather) ||
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

/// Clones the compute ops of `region` in front of their backward, on tensors of their own.
void repeat_forward(BlockTemplate& block, const Body& forward, Body& backward, Region region) {
  std::map<std::size_t, TensorId> again;
  std::vector<Op> clones;
  for (Op op : forward.ops) {
    if (op.region != region || is_collective(op)) {
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
  gather_in_backward(block, forward, backward, region, clones);
  for (Op& op : backward.ops) {
    for (const TensorId id : std::vector<TensorId>(op.reads)) {
      const auto clone = again.find(id.index());
      if (clone != again.end()) {
        replace_read(op, id, clone->second);
      }
    }
  }
  const auto first =
      std::find_if(backward.ops.begin(), backward.ops.end(), [region](const Op& op) { return op.region == region; });
  backward.ops.insert(first, clones.begin(), clones.end());
}

/// Logits, loss and their gradients tile by tile. Either all in the forward pass (ALST, TiledFusedLogitsLoss; Liger,
/// fused linear cross entropy), or each pass its own loop with the logits computed again (TRL, chunked NLL: each chunk
/// is checkpointed).
class LossTiling {
 public:
  LossTiling(const spec::Framework& framework, const OpGraph& graph, BlockTemplate& block)
      : framework_(framework), graph_(graph), block_(block) {}

  void run(std::int64_t hidden) {
    Body& forward = block_.body(Phase::forward);
    const Op* head = first_gemm(forward, Region::loss);
    const Tensor& logits = block_.tensor(head->writes[0]);
    const std::int64_t trips = loss_tiles(framework_, local_tokens(graph_, block_, forward, Region::loss),
                                          local_size(*logits.find(Dim::vocab), graph_.mesh), hidden);
    resize_logits();
    copy_head(forward);
    const bool repeats = framework_.tiled_loss_gemms.value > 3;
    if (repeats) {
      repeat_forward(block_, forward, block_.body(Phase::backward), Region::loss);
    } else {
      move_backward();
    }
    if (trips > 1 || repeats) {
      reduce_behind_loop(forward);
      make_loop(block_, forward, Region::loss, "loss_tiles", trips);
    }
    if (repeats) {
      make_loop(block_, block_.body(Phase::backward), Region::loss, "loss_tiles", trips);
    }
  }

 private:
  /// What a tile holds and moves, where its kernels are not those of the untiled loss. Forward leaves `kept` bytes a
  /// logit; with those and the bf16 gradient, the scratch of backward makes up the peak.
  void resize_logits() {
    if (framework_.tiled_logits_bytes) {
      constexpr double kBf16 = 2.0;
      const double beside = std::max(0.0, framework_.tiled_logits_bytes->value - kBf16);
      const double kept = std::min(beside, framework_.logits_kept_bytes.value);
      for (const auto& [phase, bytes] : {std::pair{Phase::forward, kept}, std::pair{Phase::backward, beside - kept}}) {
        for (const Op& op : block_.body(phase).ops) {
          if (op.region == Region::loss && std::holds_alternative<ElementwiseWork>(op.work)) {
            // Forward writes what is kept, then its scratch; backward the gradient, then its scratch.
            block_.tensor(op.writes[0]).element_bytes =
                phase == Phase::forward ? std::lround(bytes) : std::lround(kBf16);
            block_.tensor(op.writes[1]).element_bytes = std::lround(beside - kept);
          }
        }
      }
    }
    for (const auto& [phase, traffic] : {std::pair{Phase::forward, framework_.tiled_loss_forward},
                                         std::pair{Phase::backward, framework_.tiled_loss_backward}}) {
      for (Op& op : block_.body(phase).ops) {
        auto* work = std::get_if<ElementwiseWork>(&op.work);
        if (traffic && work != nullptr && op.region == Region::loss) {
          work->traffic.front().bytes_per_element = traffic->value;
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

  /// Every tile casts the head, or adds up its gradient, in passes of their own over the whole weight.
  void copy_head(Body& forward) {
    const double traffic = framework_.loss_tile_weight_traffic.value;
    const auto bytes = std::lround(framework_.loss_tile_weight_bytes.value);
    if (traffic == 0 && bytes == 0) {
      return;
    }
    const auto head = std::find_if(forward.ops.begin(), forward.ops.end(), [](const Op& op) {
      return op.region == Region::loss && std::holds_alternative<GemmWork>(op.work);
    });
    const TensorId weight = head->reads[1];
    Tensor copy = like(block_.tensor(weight), block_.tensor(weight).name + "_copy");
    copy.element_bytes = bytes;
    const TensorId copy_id = block_.add(std::move(copy));
    // Half of it where the logits are computed, half where their gradient is: of one tile, or of its two passes.
    const double share = framework_.tiled_loss_gemms.value > 3 ? 0.5 : 1.0;
    Op op{.name = "copy_head",
          .work = ElementwiseWork{.traffic = {{weight, traffic * share}}, .launches = 1},
          .reads = {weight},
          .writes = {copy_id},
          .region = Region::loss};
    head->reads[1] = copy_id;
    forward.ops.insert(head, std::move(op));
  }

  /// All of backward that goes by tiles happens in forward.
  void move_backward() {
    Body& forward = block_.body(Phase::forward);
    Body& backward = block_.body(Phase::backward);
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
  }

  const spec::Framework& framework_;
  const OpGraph& graph_;
  BlockTemplate& block_;
};

/// MLP and loss computed in tiles of the sequence (ALST, arXiv 2506.13996 §3.1): backward repeats the forward of each
/// tile, so only the input stays. Where tiles are left to autograd, all that they save stays and only gradients are
/// those of one tile.
class Tiling final : public Strategy {
 public:
  std::string name() const override { return "tiling"; }
  std::string summary() const override { return "tiled MLP and tiled loss (ALST): one tile's activations at a time"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    const std::int64_t tensor = context.plan->mesh.size(MeshAxis::tensor);
    const bool chunked = context.plan->sequence_chunks() > 1;
    if ((context.plan->tiled_mlp || chunked) && context.plan->adapters && tensor > 1) {
      return {{"a tiled MLP beside tensor parallelism takes no adapters: their inner sums are reduced within a tile",
               {{"tensor", static_cast<double>(tensor)}},
               chunked ? "tensor 1, or no sequence_chunk" : "tiled_mlp: false"}};
    }
    return {};
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    for (BlockTemplate& block : graph.templates) {
      const bool tiled_mlp = context.plan->tiled_mlp || context.plan->sequence_chunks() > 1;
      if (tiled_mlp && block.kind == BlockKind::layer) {
        tile_mlp(context, graph, block);
      }
      const bool tiled_loss = context.plan->tiled_loss || context.framework->loss_always_tiled.value != 0;
      if (tiled_loss && block.kind == BlockKind::head) {
        LossTiling(*context.framework, graph, block).run(context.model->hidden);
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
    const auto& tile = context.framework->mlp_tile_tokens;
    const std::int64_t trips =
        chunks > 1 ? std::min(tokens, 2 * chunks) : ceil_div(tokens, tile ? tile->value : context.model->hidden);
    if (trips <= 1) {
      return;
    }
    if (chunks > 1 || context.framework->mlp_tiles_kept.value == 0) {
      repeat_forward(block, forward, backward, Region::mlp);
    }
    make_loop(block, forward, Region::mlp, "mlp_tiles", trips);
    make_loop(block, backward, Region::mlp, "mlp_tiles", trips);
  }
};

}  // namespace

const Strategy& tiling_strategy() {
  static const Tiling strategy;
  return strategy;
}

}  // namespace ulysim::strategies
