// Work of a step by pencil: 6 FLOPs for each matrix parameter and token, and attention over the exact pairs.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/workload/hf_config.h"
#include "sim/workload/training_step.h"
#include "sim/workload/verify.h"

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

const Tensor& named(const BlockTemplate& block, const std::string& name) {
  return *std::find_if(block.tensors.begin(), block.tensors.end(),
                       [&name](const Tensor& tensor) { return tensor.name == name; });
}

const Op& op_named(const Body& body, const std::string& name) {
  return *std::find_if(body.ops.begin(), body.ops.end(), [&name](const Op& op) { return op.name == name; });
}

TEST(TrainingStep, norms_of_queries_and_keys_move_and_keep_bytes_and_compute_nothing) {
  // qwen3-8b: 32 query and 8 key heads of 128, normalised before they are rotated; eager: 6 B an element stay.
  const ElementwiseCosts eager{.norm_forward = 36, .norm_backward = 84, .norm_saved = 6, .norm_keeps_input = false};
  Transformer qwen = model("qwen3-8b");
  const OpGraph graph = build_training_step(qwen, {.sequence_length = 1000, .costs = eager});
  const BlockTemplate& layer = graph.templates[1];
  EXPECT_EQ(local_bytes(named(layer, "q_norm_kept"), graph.mesh).value(), 1000 * 32 * 128 * 6);
  EXPECT_EQ(local_bytes(named(layer, "k_norm_kept"), graph.mesh).value(), 1000 * 8 * 128 * 6);
  for (const auto& [phase, op, bytes] :
       {std::tuple{Phase::forward, "qk_norm", 36.0}, std::tuple{Phase::backward, "qk_norm_backward", 84.0}}) {
    const auto& traffic = std::get<ElementwiseWork>(op_named(layer.body(phase), op).work).traffic;
    ASSERT_EQ(traffic.size(), 2U) << op;
    EXPECT_EQ(traffic[0].bytes_per_element, bytes) << op;
    EXPECT_EQ(local_elements(layer.tensor(traffic[0].tensor), graph.mesh), 1000 * 32 * 128) << op;
    EXPECT_EQ(local_elements(layer.tensor(traffic[1].tensor), graph.mesh), 1000 * 8 * 128) << op;
  }
  qwen.qk_norm = QkNorm::none;
  EXPECT_EQ(model_flops(build_training_step(qwen, {.sequence_length = 1000})).value(), model_flops(graph).value());
}

TEST(TrainingStep, a_norm_that_saves_a_copy_lets_its_input_go) {
  for (const bool keeps : {true, false}) {
    OpGraph graph =
        build_training_step(model("llama-3.1-8b"), {.sequence_length = 1000, .costs = {.norm_keeps_input = keeps}});
    place_lifetimes(graph);
    const BlockTemplate& layer = graph.templates[1];
    const Op& residual = op_named(layer.body(Phase::forward), "residual1");
    const bool freed = std::any_of(residual.frees.begin(), residual.frees.end(),
                                   [&](TensorId id) { return layer.tensor(id).name == "x1"; });
    EXPECT_EQ(freed, !keeps);
  }
}

TEST(TrainingStep, what_a_norm_works_on_is_gone_when_it_is_done) {
  OpGraph graph =
      build_training_step(model("llama-3.1-8b"), {.sequence_length = 1000, .costs = {.norm_backward_scratch = 12}});
  place_lifetimes(graph);
  const BlockTemplate& layer = graph.templates[1];
  const Op& norm = op_named(layer.body(Phase::backward), "norm1_backward");
  ASSERT_EQ(norm.scratch.size(), 1U);
  EXPECT_EQ(local_bytes(layer.tensor(norm.scratch[0]), graph.mesh).value(), 1000 * 4096 * 12);
  for (const auto& list : {norm.allocs, norm.frees}) {
    EXPECT_NE(std::find(list.begin(), list.end(), norm.scratch[0]), list.end());
  }
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

// Of a mixture of experts a token passes through top_k: 6 FLOPs for each of the active parameters.

TEST(TrainingStep, mixtral_counts_two_of_eight_experts) {
  // q and o 4096² each, k and v 4096·1024 each, router 4096·8, two experts of three 4096·14336. Head 4096·32000.
  constexpr double kLayer = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 4096.0 * 8 + 2 * 3.0 * 4096 * 14336;
  constexpr double kActive = 32 * kLayer + 4096.0 * 32000;
  constexpr double kPairs = 8192.0 * 8193 / 2;
  const OpGraph graph = build_training_step(model("mixtral-8x7b"), {.sequence_length = 8192});
  EXPECT_DOUBLE_EQ(model_flops(graph).value(), 6 * kActive * 8192 + 12.0 * 32 * 32 * 128 * kPairs);
  EXPECT_DOUBLE_EQ(executed_flops(graph).value(), 6 * kActive * 8192 + 14.0 * 32 * 32 * 128 * kPairs);
}

TEST(TrainingStep, qwen3_moe_counts_eight_of_128_experts) {
  // 48 layers of 2048; 32 heads of 128 (q and o 2048·4096), 4 key/value heads (512), experts of 768.
  constexpr double kLayer = 2.0 * 2048 * 4096 + 2.0 * 2048 * 512 + 2048.0 * 128 + 8 * 3.0 * 2048 * 768;
  constexpr double kActive = 48 * kLayer + 2048.0 * 151936;
  constexpr double kPairs = 8192.0 * 8193 / 2;
  const OpGraph graph = build_training_step(model("qwen3-30b-a3b"), {.sequence_length = 8192});
  EXPECT_DOUBLE_EQ(model_flops(graph).value(), 6 * kActive * 8192 + 12.0 * 48 * 32 * 128 * kPairs);
}

TEST(TrainingStep, deepseek_counts_latents_dense_layers_and_shared_experts) {
  // Multi-head latent attention: queries 7168→1536→128·192, keys and values 7168→(512 + 64) and 512→128·(128 + 128),
  // output 128·128→7168. Three dense layers of 18432; 58 with 8 of 256 experts of 2048, one shared, and the router.
  constexpr double kAttention =
      7168.0 * 1536 + 1536.0 * 128 * 192 + 7168.0 * 576 + 512.0 * 128 * 256 + 128.0 * 128 * 7168;
  constexpr double kDense = 3.0 * 7168 * 18432;
  constexpr double kMoe = 7168.0 * 256 + 9 * 3.0 * 7168 * 2048;
  constexpr double kActive = 61 * kAttention + 3 * kDense + 58 * kMoe + 7168.0 * 129280;
  constexpr double kPairs = 4096.0 * 4097 / 2;
  const OpGraph graph = build_training_step(model("deepseek-v3"), {.sequence_length = 4096});
  ASSERT_EQ(graph.templates.size(), 5U) << "embedding, dense and mixture-of-experts layers, head, optimizer";
  // Forward 2·(192 + 128) a pair and head; QKᵀ, dQ, dK by 192 and dP, dV by 128 backward, in the model without QKᵀ.
  EXPECT_DOUBLE_EQ(model_flops(graph).value(), 6 * kActive * 4096 + 6.0 * 61 * 128 * 320 * kPairs);
  EXPECT_DOUBLE_EQ(executed_flops(graph).value(),
                   6 * kActive * 4096 + 61.0 * 128 * (2 * 320 + 2 * (3 * 192 + 2 * 128)) * kPairs);
}

TEST(TrainingStep, dense_and_expert_layers_alternate) {
  Transformer t = model("mixtral-8x7b");
  for (std::size_t layer = 0; layer < t.layer_specs.size(); layer += 2) {
    t.layer_specs[layer].moe = false;
  }
  const OpGraph graph = build_training_step(t, {.sequence_length = 8192});
  ASSERT_EQ(graph.templates.size(), 5U);
  EXPECT_EQ(graph.templates[1].instances, 16);
  EXPECT_EQ(graph.templates[2].instances, 16);
  EXPECT_TRUE(verify_shapes(graph).empty());
}

TEST(TrainingStep, every_parameter_is_in_one_tensor) {
  const auto models = std::filesystem::path(ULYSIM_SOURCE_DIR) / "scenarios" / "models";
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    if (!entry.is_directory()) {
      continue;
    }
    const std::string name = entry.path().filename().string();
    const Transformer t = model(name.c_str());
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

// Adapters. A map in→out has rank·(in + out) elements in A and B.

TEST(Adapters, are_all_that_is_trained) {
  // llama-3.1-8b, rank 16, 32 layers: q and o 4096 + 4096 each, k and v 4096 + 1024 each, three of 4096 + 14336.
  const OpGraph all = build_training_step(model("llama-3.1-8b"), {.sequence_length = 4096, .adapters = Adapters{}});
  EXPECT_EQ(trained_elements(all).dense, 16LL * 32 * (2 * 8192 + 2 * 5120 + 3 * 18432));
  const OpGraph two = build_training_step(
      model("llama-3.1-8b"), {.sequence_length = 4096, .adapters = Adapters{.targets = {"q_proj", "v_proj"}}});
  EXPECT_EQ(trained_elements(two).dense, 16LL * 32 * (8192 + 5120));
  for (const BlockTemplate& block : two.templates) {
    for (const Tensor& tensor : block.tensors) {
      if (tensor.kind == MemoryKind::optimizer_states) {
        EXPECT_EQ(global_elements(tensor), 16LL * 32 * (8192 + 5120));
      }
      if (tensor.kind == MemoryKind::gradients) {
        EXPECT_NE(tensor.find(Dim::adapter), nullptr) << tensor.name << " is of a frozen weight";
      }
    }
  }
  EXPECT_TRUE(verify_shapes(two).empty());
}

TEST(Adapters, frozen_weights_cost_four_flops_a_token_and_adapters_six) {
  constexpr double kLayer = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336;
  constexpr double kMatrices = 32 * kLayer + 4096.0 * 128256;
  constexpr double kAdapters = 16.0 * 32 * (2 * 8192 + 2 * 5120 + 3 * 18432);
  constexpr double kTokens = 65536;
  constexpr double kPairs = kTokens * (kTokens + 1) / 2;
  const OpGraph graph = build_training_step(model("llama-3.1-8b"), {.sequence_length = 65536, .adapters = Adapters{}});
  EXPECT_DOUBLE_EQ(model_flops(graph).value(),
                   (4 * kMatrices + 6 * kAdapters) * kTokens + 12.0 * 32 * 32 * 128 * kPairs);
}

TEST(Adapters, experts_have_their_own) {
  // mixtral-8x7b, 32 layers: of each of 8 experts up 4096→14336 and down, rank 4; the router has none.
  const OpGraph graph = build_training_step(
      model("mixtral-8x7b"),
      {.sequence_length = 4096, .adapters = Adapters{.rank = 4, .targets = {"up_proj", "down_proj"}}});
  EXPECT_EQ(trained_elements(graph).of_experts, 32LL * 8 * 2 * 4 * (4096 + 14336));
  EXPECT_EQ(trained_elements(graph).dense, 0);
  EXPECT_TRUE(verify_shapes(graph).empty());
}

TEST(Adapters, four_bit_weights_are_made_bf16_before_each_use) {
  const OpGraph graph = build_training_step(model("llama-3.1-8b"),
                                            {.sequence_length = 4096, .adapters = Adapters{.base = BaseWeights::nf4}});
  const BlockTemplate& layer = graph.templates[1];
  // 16,384 elements: half a byte each, 256 scales of a byte and one of 4. A 4096 × 4096 matrix has 1024 of those.
  std::int64_t seen = 0;
  for (const Tensor& tensor : layer.tensors) {
    if (tensor.name == "w_q") {
      EXPECT_EQ(local_bytes(tensor, graph.mesh).value(), 1024LL * (8192 + 256 + 4));
      ++seen;
    }
    if (tensor.name.rfind("w_q_dequantise", 0) == 0) {
      EXPECT_EQ(local_bytes(tensor, graph.mesh).value(), 4096LL * 4096 * 2);
      EXPECT_FALSE(tensor.persistent);
      ++seen;
    }
  }
  EXPECT_EQ(seen, 3) << "one tensor of each pass";
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    const auto& ops = layer.body(phase).ops;
    EXPECT_EQ(std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.name.rfind("dequantise", 0) == 0; }),
              7)
        << "q, k, v, o, gate, up, down";
  }
  for (const Tensor& tensor : graph.templates.front().tensors) {
    EXPECT_EQ(tensor.block_elements, 1) << "the embedding stays bf16";
  }
}

// Low precision.

TEST(Precision, is_of_the_layers_linear_maps_alone) {
  for (const kernel::Precision precision :
       {kernel::Precision::fp8, kernel::Precision::mxfp8, kernel::Precision::nvfp4}) {
    const OpGraph plain = build_training_step(model("mixtral-8x7b"), {.sequence_length = 4096});
    const OpGraph graph =
        build_training_step(model("mixtral-8x7b"), {.sequence_length = 4096, .gemm_precision = precision});
    EXPECT_EQ(model_flops(graph).value(), model_flops(plain).value());
    std::int64_t low = 0;
    for (const BlockTemplate& block : graph.templates) {
      for (const Body& body : block.bodies) {
        for (const Op& op : body.ops) {
          const auto* work = std::get_if<GemmWork>(&op.work);
          const bool router = op.name.rfind("router", 0) == 0;
          if (work != nullptr) {
            const bool layer = block.kind == BlockKind::layer && !router;
            EXPECT_EQ(work->precision, layer ? precision : kernel::Precision::bf16) << block.name << " " << op.name;
            low += layer ? 1 : 0;
          }
        }
      }
    }
    EXPECT_EQ(low, 3 * 7) << "q, k, v, o, and gate, up, down of the experts: forward and two backward";
    EXPECT_TRUE(verify_shapes(graph).empty());
  }
}

TEST(Precision, what_waits_for_backward_waits_quantised) {
  // The input of q, k and v is kept for their weights' gradients: in fp8 a byte an element, mxfp8 33 for 32, nvfp4 9
  // for 16; in bf16 nothing reads it after it was cast.
  const std::array<std::pair<kernel::Precision, double>, 3> kinds{
      {{kernel::Precision::fp8, 1.0}, {kernel::Precision::mxfp8, 33.0 / 32}, {kernel::Precision::nvfp4, 9.0 / 16}}};
  for (const auto& [precision, bytes] : kinds) {
    const OpGraph graph =
        build_training_step(model("llama-3.1-8b"), {.sequence_length = 4096, .gemm_precision = precision});
    const BlockTemplate& layer = graph.templates[1];
    std::int64_t read = 0;
    for (const Op& op : layer.body(Phase::backward).ops) {
      for (const TensorId id : op.reads) {
        EXPECT_NE(layer.tensor(id).name, "normed") << op.name;
        if (layer.tensor(id).name == "normed_quantise") {
          ++read;
          EXPECT_DOUBLE_EQ(static_cast<double>(local_bytes(layer.tensor(id), graph.mesh).value()),
                           4096.0 * 4096 * bytes);
        }
      }
    }
    EXPECT_EQ(read, 3) << "the gradients of q, k and v";
  }
}

}  // namespace
}  // namespace ulysim::workload
