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

lab::Bench of_framework(const char* framework, Plan plan) {
  lab::Bench bench = lab::bench("llama-3.1-8b", std::move(plan));
  bench.framework = lab::framework(framework);
  return bench;
}

const Body& head_body(const OpGraph& graph, Phase phase) {
  return head_of(graph).body(phase);
}

TEST(Tiling, liger_takes_tiles_whose_logits_are_as_large_as_the_hidden_states) {
  // ceil(128256/4096) = 32; 475,000 tokens: next power of two of ceil(475000/32) = 14844 is 16,384: 29 tiles.
  const OpGraph graph = of_framework("arctic-training", tiled(475000)).after({"tiling"});
  const Body& forward = head_body(graph, Phase::forward);
  ASSERT_EQ(forward.loops.size(), 1U);
  EXPECT_EQ(forward.loops[0].trips, 29);
  // Each logit takes the 2 bytes of bf16, its gradient stands in its place: a tile of 16,380 tokens.
  const std::int64_t tile = (475000 + 28) / 29;
  for (const Tensor& each : head_of(graph).tensors) {
    if (each.kind == MemoryKind::logits) {
      const std::int64_t bytes = held_bytes(graph, forward, each).value();
      EXPECT_EQ(bytes, each.name == "logits" || each.name == "d_logits" ? tile * 128256 * 2 : 0) << each.name;
    }
  }
  EXPECT_TRUE(head_body(graph, Phase::backward).loops.empty()) << "all in the forward pass";
}

TEST(Tiling, tiles_left_to_autograd_keep_all_they_save_and_repeat_nothing) {
  // TRL: tiles of 16,384 tokens; 65,536 make 4. Gate, up and product stay whole, gradients are those of a tile.
  const lab::Bench trl = of_framework("trl-fsdp2", tiled(65536));
  const OpGraph graph = trl.after({"tiling"});
  const BlockTemplate& layer = lab::layer_of(graph);
  ASSERT_EQ(layer.body(Phase::backward).loops.size(), 1U);
  EXPECT_EQ(layer.body(Phase::backward).loops[0].trips, 4);
  for (const auto& [name, phase, tokens] :
       {std::tuple{"up", Phase::forward, 65536LL}, std::tuple{"product", Phase::forward, 65536LL},
        std::tuple{"d_up", Phase::backward, 16384LL}}) {
    const auto found = std::find_if(layer.tensors.begin(), layer.tensors.end(),
                                    [name = name](const Tensor& each) { return each.name == name; });
    ASSERT_NE(found, layer.tensors.end());
    EXPECT_EQ(held_bytes(graph, layer.body(phase), *found).value(), tokens * 14336 * 2) << name;
  }
  for (const Op& op : layer.body(Phase::backward).ops) {
    EXPECT_FALSE(op.recomputed) << op.name;
  }
}

TEST(Tiling, a_number_of_tiles_is_one_at_any_length) {
  for (const std::int64_t tokens : {8192, 1 << 20}) {
    const OpGraph graph = of_framework("torchtitan", tiled(tokens)).after({"tiling"});
    EXPECT_EQ(head_body(graph, Phase::forward).loops.at(0).trips, 8);
  }
}

TEST(Tiling, trl_tiles_unasked_in_chunks_of_256_tokens_and_computes_their_logits_twice) {
  const lab::Bench trl = of_framework("trl-fsdp2", lab::plain_plan(65536));
  const OpGraph graph = trl.after({"tiling"});
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    ASSERT_EQ(head_body(graph, phase).loops.size(), 1U);
    EXPECT_EQ(head_body(graph, phase).loops[0].trips, 256);
  }
  // Four products of the head instead of three: one more of 2·s·h·V.
  EXPECT_DOUBLE_EQ(executed_flops(graph).value() - executed_flops(trl.logical()).value(), 2.0 * 65536 * 4096 * 128256);
  EXPECT_EQ(model_flops(graph).value(), model_flops(trl.logical()).value());
  for (const Op& op : head_body(graph, Phase::backward).ops) {
    for (const TensorId id : op.reads) {
      EXPECT_NE(head_of(graph).tensor(id).name, "log_probabilities") << "no logits are kept from forward to backward";
    }
  }
}

TEST(Tiling, the_passes_over_the_head_are_repeated_for_every_tile) {
  // 32 bytes an element of the 4096 × 128,256 head and chunk, half of them in each of the two passes; 256 chunks.
  const OpGraph graph = of_framework("trl-fsdp2", lab::plain_plan(65536)).after({"tiling"});
  const BlockTemplate& head = head_of(graph);
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    std::int64_t moved = 0;
    for (const Op& op : head.body(phase).ops) {
      if (op.name.rfind("copy_head", 0) == 0) {
        const auto kernel = std::get<kernel::MemoryBound>(kernel_of(graph, head, head.body(phase), op, {}));
        moved += kernel.traffic.value() * head.body(phase).loops.at(0).trips;
      }
    }
    EXPECT_EQ(moved, 256LL * 16 * 4096 * 128256);
  }
}

TEST(Tiling, a_vocabulary_is_padded_to_a_multiple_for_every_tensor_rank) {
  // gpt2: 50,257 logits; Megatron pads to 128 for each of 4 tensor ranks: 98·512 = 50,688, of which a rank has 12,672.
  Plan plan = lab::plain_plan(2048);
  plan.mesh.set_size(MeshAxis::tensor, 4);
  lab::Bench bench = lab::bench("gpt2", plan);
  const double model = model_flops(bench.logical()).value();
  bench.framework = lab::framework("megatron-core");
  const OpGraph graph = bench.after({"tensor"});
  std::int64_t seen = 0;
  for (const BlockTemplate& block : graph.templates) {
    for (const Tensor& each : block.tensors) {
      const Extent* vocabulary = each.find(Dim::vocab);
      if (vocabulary != nullptr) {
        EXPECT_EQ(local_size(*vocabulary, graph.mesh), 12672) << each.name;
        ++seen;
      }
      if (each.kind == MemoryKind::optimizer_states) {
        // Two layers; embedding and head are one.
        const std::int64_t padded = count_parameters(bench.model).total + (50688 - 50257) * 768;
        EXPECT_EQ(global_elements(each), padded);
      }
    }
  }
  EXPECT_GT(seen, 5);
  EXPECT_NEAR(model_flops(graph).value() / model, 1, 1e-12) << "padding is work of no model";
}

}  // namespace
}  // namespace ulysim::strategies
