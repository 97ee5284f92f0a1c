// Tiled MLP and tiled loss (ALST, arXiv 2506.13996 §3.1): ceil(s/h) tiles of the MLP, each tile's forward repeated in
// backward; the loss in tiles of at most 1 GiB of fp32 logits, with its backward in the forward pass.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

Plan tiled(std::int64_t sequence) {
  Plan plan = lab::plain_plan(sequence);
  plan.tiled_mlp = true;
  plan.tiled_loss = true;
  return plan;
}

const BlockTemplate& head_of(const OpGraph& graph) {
  return graph.templates[graph.templates.size() - 2];
}

TEST(Tiling, takes_one_tile_for_each_hidden_width_of_tokens) {
  // llama-3.1-8b, h = 4096: 65,536 tokens are 16 tiles of 4096; one more token makes 17.
  for (const auto& [tokens, tiles] : {std::pair{65536, 16}, std::pair{65537, 17}}) {
    const OpGraph graph = lab::bench("llama-3.1-8b", tiled(tokens)).after({"tiling"});
    const Body& forward = lab::layer_of(graph).body(Phase::forward);
    ASSERT_EQ(forward.loops.size(), 1U);
    EXPECT_EQ(forward.loops[0].trips, tiles);
  }
}

TEST(Tiling, one_tile_is_no_tile) {
  const OpGraph graph = lab::bench("llama-3.1-8b", tiled(4096)).after({"tiling"});
  EXPECT_TRUE(lab::layer_of(graph).body(Phase::forward).loops.empty());
}

TEST(Tiling, intermediates_are_held_one_tile_at_a_time) {
  const OpGraph graph = lab::bench("llama-3.1-8b", tiled(65536)).after({"tiling"});
  const BlockTemplate& layer = lab::layer_of(graph);
  std::int64_t seen = 0;
  for (const Tensor& each : layer.tensors) {
    if (each.name == "up" || each.name == "d_up") {
      const Body& body = layer.body(each.name == "up" ? Phase::forward : Phase::backward);
      EXPECT_EQ(held_bytes(graph, body, each).value(), 4096LL * 14336 * 2) << each.name;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 2);
}

TEST(Tiling, runs_the_mlp_forward_once_more) {
  // Gate, up and down: three products of 2·s·h·f each, in each of two layers.
  const lab::Bench bench = lab::bench("llama-3.1-8b", tiled(65536));
  EXPECT_DOUBLE_EQ(executed_flops(bench.after({"tiling"})).value() - executed_flops(bench.after({})).value(),
                   2 * 3 * 2.0 * 65536 * 4096 * 14336);
  EXPECT_EQ(model_flops(bench.after({"tiling"})).value(), model_flops(bench.after({})).value());
}

TEST(Tiling, loss_tiles_hold_at_most_a_gibibyte_of_fp32_logits) {
  // 65,536 tokens · 128,256 · 4 bytes = 31.3 GiB: 32 tiles.
  const OpGraph graph = lab::bench("llama-3.1-8b", tiled(65536)).after({"tiling"});
  const BlockTemplate& head = head_of(graph);
  ASSERT_EQ(head.body(Phase::forward).loops.size(), 1U);
  EXPECT_EQ(head.body(Phase::forward).loops[0].trips, 32);
  std::int64_t logits = 0;
  for (const Tensor& each : head.tensors) {
    if (each.kind == MemoryKind::logits) {
      logits += held_bytes(graph, head.body(Phase::forward), each).value();
    }
  }
  EXPECT_LT(logits, std::int64_t{5} << 30U) << "a few copies of a tile and not of 31 GiB";
}

TEST(Tiling, tiled_loss_leaves_no_logits_for_backward) {
  const OpGraph graph = lab::bench("llama-3.1-8b", tiled(65536)).after({"tiling"});
  const BlockTemplate& head = head_of(graph);
  for (const Op& op : head.body(Phase::backward).ops) {
    for (const TensorId id : op.reads) {
      EXPECT_NE(head.tensor(id).kind, MemoryKind::logits) << op.name << " reads " << head.tensor(id).name;
    }
  }
}

TEST(Tiling, beside_tensor_parallelism_gathers_once_for_all_tiles) {
  if (!lab::has("tensor")) {
    GTEST_SKIP() << "tensor is not in the catalogue";
  }
  Plan plan = tiled(65536);
  plan.mesh.set_size(MeshAxis::tensor, 4);
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"tensor", "tiling"});
  const lab::Asked forward{.phase = Phase::forward, .purpose = Purpose::tensor_parallel};
  EXPECT_EQ(lab::sent(graph, forward), 4 * 3.0 / 4 * 65536 * 4096 * 2);
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::backward, .purpose = Purpose::tensor_parallel}),
            6 * 3.0 / 4 * 65536 * 4096 * 2);
}

}  // namespace
}  // namespace ulysim::strategies
