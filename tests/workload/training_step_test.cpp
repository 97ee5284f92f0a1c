// Work of a step by pencil: 6 FLOPs for each matrix parameter and token, and attention over the exact pairs.

#include <gtest/gtest.h>

#include <filesystem>

#include "sim/workload/hf_config.h"
#include "sim/workload/training_step.h"

namespace ulysim::workload {
namespace {

Transformer model(const char* name) {
  return load_hf_config(std::filesystem::path(ULYSIM_SOURCE_DIR) / "scenarios" / "models" / name);
}

TEST(TrainingStep, llama_counts_its_matrices_and_half_the_square) {
  // A layer of llama-3.1-8b: q and o 4096·4096 each, k and v 4096·1024 each, three of 4096·14336. Head 4096·128256.
  constexpr double kLayer = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336;
  constexpr double kMatrices = 32 * kLayer + 4096.0 * 128256;
  static_assert(kMatrices == 7504658432.0);
  constexpr double kTokens = 65536;
  constexpr double kPairs = kTokens * (kTokens + 1) / 2;
  // Forward 4·d a pair and head, backward twice that: 12·L·a·d·pairs.
  const OpGraph graph = build_training_step(model("llama-3.1-8b"), {.sequence_length = 65536});
  EXPECT_DOUBLE_EQ(model_flops(graph).value(), 6 * kMatrices * kTokens + 12.0 * 32 * 32 * 128 * kPairs);
  // The backward kernel computes QKᵀ again: 2.5 times its forward, 14 in all.
  EXPECT_DOUBLE_EQ(executed_flops(graph).value(), 6 * kMatrices * kTokens + 14.0 * 32 * 32 * 128 * kPairs);
}

TEST(TrainingStep, batch_and_micro_batches_multiply) {
  const Transformer llama = model("llama-3.1-8b");
  const double one = model_flops(build_training_step(llama, {.sequence_length = 8192})).value();
  EXPECT_DOUBLE_EQ(
      model_flops(build_training_step(llama, {.sequence_length = 8192, .batch = 3, .micro_batches = 2})).value(),
      6 * one);
}

TEST(TrainingStep, a_window_bounds_the_pairs) {
  // mistral-7b-v0.1: every layer sees the last 4096 tokens. 32,768 rows of 4096, less the missing part of the first.
  constexpr double kLayer = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336;
  constexpr double kMatrices = 32 * kLayer + 4096.0 * 32000;
  constexpr double kPairs = 32768.0 * 4096 - 4096.0 * 4095 / 2;
  const OpGraph graph = build_training_step(model("mistral-7b-v0.1"), {.sequence_length = 32768});
  EXPECT_DOUBLE_EQ(model_flops(graph).value(), 6 * kMatrices * 32768 + 12.0 * 32 * 32 * 128 * kPairs);
}

TEST(TrainingStep, a_chunk_bounds_the_pairs) {
  // Two layers that see their own chunk of 4096 only (Llama 4): 8 triangles of 4096 tokens, not one of 32,768.
  Transformer llama = model("llama-3.1-8b");
  const double full = model_flops(build_training_step(llama, {.sequence_length = 32768})).value();
  llama.layer_specs[0].chunk = llama.layer_specs[1].chunk = 4096;
  const OpGraph graph = build_training_step(llama, {.sequence_length = 32768});
  ASSERT_EQ(graph.templates.size(), 5U) << "embedding, two kinds of layer, head, optimizer";
  constexpr double kHidden = 32768.0 * 32769 / 2 - 8 * (4096.0 * 4097 / 2);
  EXPECT_DOUBLE_EQ(model_flops(graph).value(), full - 12.0 * 2 * 32 * 128 * kHidden);
}

TEST(TrainingStep, a_window_of_the_scenario_comes_on_top_of_the_layers_own) {
  const StepOptions options{.sequence_length = 8192, .sliding_window = 1024};
  EXPECT_EQ(mask_of({}, options), (Mask{.window = 1024}));
  EXPECT_EQ(mask_of({.sliding_window = 512}, options), (Mask{.window = 512}));
  EXPECT_EQ(mask_of({.sliding_window = 4096}, options), (Mask{.window = 1024}));
  EXPECT_EQ(mask_of({.chunk = 2048}, options), (Mask{.window = 1024, .chunk = 2048}));
  EXPECT_EQ(mask_of({.sliding_window = 512}, {.block_sparse = BlockSparse{}}), (Mask{.sparse = BlockSparse{}}))
      << "a pattern replaces windows and chunks";
}

TEST(TrainingStep, windowed_and_full_layers_are_templates_of_their_own) {
  // gemma-2-9b: 42 layers, every other with a window of 4096; 16 heads of 256; 32,768 tokens.
  const OpGraph graph = build_training_step(model("gemma-2-9b"), {.sequence_length = 32768});
  ASSERT_EQ(graph.templates.size(), 5U) << "embedding, two kinds of layer, head, optimizer";
  EXPECT_EQ(graph.templates[1].instances, 21);
  EXPECT_EQ(graph.templates[2].instances, 21);
  constexpr double kLayer = 2.0 * 3584 * 4096 + 2.0 * 3584 * 2048 + 3.0 * 3584 * 14336;
  constexpr double kMatrices = 42 * kLayer + 3584.0 * 256000;
  constexpr double kPairs = 21 * (32768.0 * 4096 - 4096.0 * 4095 / 2) + 21 * (32768.0 * 32769 / 2);
  EXPECT_DOUBLE_EQ(model_flops(graph).value(), 6 * kMatrices * 32768 + 12.0 * 16 * 256 * kPairs);
}

TEST(TrainingStep, a_plain_mlp_has_two_matrices) {
  // gpt2: 12 layers of 768; qkvo 4·768², MLP 2·768·3072; the tied head is a product all the same.
  constexpr double kMatrices = 12 * (4.0 * 768 * 768 + 2.0 * 768 * 3072) + 768.0 * 50257;
  const OpGraph graph = build_training_step(model("gpt2"), {.sequence_length = 1024});
  EXPECT_DOUBLE_EQ(model_flops(graph).value(), 6 * kMatrices * 1024 + 12.0 * 12 * 12 * 64 * (1024.0 * 1025 / 2));
}

TEST(TrainingStep, every_parameter_is_in_one_tensor) {
  for (const char* name : {"llama-3.1-8b", "gpt2", "gemma-2-9b", "falcon-7b", "gpt-neox-20b", "mpt-7b", "qwen2.5-7b"}) {
    const Transformer t = model(name);
    const OpGraph graph = build_training_step(t, {.sequence_length = 8192});
    std::int64_t sum = 0;
    for (const BlockTemplate& block : graph.templates) {
      for (const Tensor& tensor : block.tensors) {
        if (tensor.parameter && !tensor.shared) {
          sum += block.instances * global_elements(tensor);
        }
      }
    }
    EXPECT_EQ(sum, count_parameters(t).total) << name;
  }
}

}  // namespace
}  // namespace ulysim::workload
