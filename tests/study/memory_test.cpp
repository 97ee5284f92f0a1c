// Which question this answers: are the states, checkpoints, logits and host copies of small plans those of a pencil?

#include <gtest/gtest.h>

#include <bit>
#include <fstream>

#include "sim/memory/accountant.h"
#include "sim/workload/shape.h"
#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

// 4 layers of hidden 512, 8 heads of 64, FFN 1024, vocabulary 4096. All weights of a layer are cut under ZeRO-3; its
// two norms (1024 elements) stay below the persistence threshold of 10 · 512.
constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kVocab = 4096;
constexpr std::int64_t kSmall = kLayers * 2 * kHidden + kHidden;
constexpr std::int64_t kParameters =
    kLayers * (4 * kHidden * kHidden + 3 * kHidden * 1024) + 2 * kVocab * kHidden + kSmall;

class Tiny : public testing::Test {
 protected:
  Tiny() {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("tiny_model_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "config.json")
        << R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,)"
        << R"( "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 4096,)"
        << R"( "max_position_embeddings": 1048576, "tie_word_embeddings": false})";
  }
  ~Tiny() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] scenario::Scenario study(const std::string& training, const std::string& plan) const {
    return parse({.model = (folder_ / "config.json").string(), .training = training, .plans = "[" + plan + "]"});
  }
  struct Books {
    memory::MemoryResult rank{};
    std::unique_ptr<Stages> stages{};
  };
  [[nodiscard]] Books books(const std::string& training, const std::string& plan) const {
    const scenario::Scenario scenario = study(training, plan);
    const Machine machine = build_machine(scenario);
    Books out{.stages = run_stages(scenario, machine, scenario.plans.front(), Stage::timeline)};
    out.rank = memory::account(out.stages->parallel, out.stages->schedules.front(), out.stages->timeline.ranks.front());
    return out;
  }
  static std::int64_t at_peak(const Books& books, workload::MemoryKind kind) {
    return books.rank.gpu.at_peak.at(static_cast<std::size_t>(kind));
  }

  std::filesystem::path folder_;
};

TEST_F(Tiny, StatesAreShardedAsTheStageSays) {
  // 2 weight + 2 gradient + 12 master and moments, over 8 ranks (ZeRO, arXiv 1910.02054 §3). Before the first op only
  // these are there. Cut tensors are rounded up to whole elements, at most one each of 14 B, 50 of them.
  const std::int64_t p = kParameters;
  const std::array<std::int64_t, 4> expected{16 * p, 4 * p + 12 * p / 8, 2 * p + 14 * p / 8,
                                             16 * p / 8 + 2 * kSmall * 7 / 8};
  for (std::size_t stage = 0; stage < expected.size(); ++stage) {
    const Books b = books("{sequence_length: 2048, zero: " + std::to_string(stage) + "}", "{}");
    const auto states = static_cast<double>(b.rank.gpu.curve.front().bytes);
    EXPECT_EQ(b.rank.gpu.curve.front().at, Instant{});
    EXPECT_NEAR(states, static_cast<double>(expected.at(stage)), 700.0) << "ZeRO stage " << stage;
  }
}

TEST_F(Tiny, AdaptersLeaveFrozenWeightsAlone) {
  // Rank 4 on q, k, v and o: 4·(512 + 512) elements each, the MLP's three 4·(512 + 1024), in four layers, on 8 ranks of
  // ZeRO-2: states 12 bytes, summed gradients 2. Weights are whole, the matrices of a layer in 8452 bytes for 16,384.
  const std::string training = "{sequence_length: 8Ki, zero: 2, trainable: {lora: {rank: 4}}, base_precision: nf4}";
  const Books b = books(training, "{}");
  constexpr std::int64_t kAdapters = kLayers * 4 * (4 * 1024 + 3 * 1536);
  constexpr std::int64_t kMatrices = kLayers * (4 * kHidden * kHidden + 3 * kHidden * 1024);
  EXPECT_EQ(at_peak(b, workload::MemoryKind::optimizer_states), kAdapters / 8 * 12);
  EXPECT_EQ(at_peak(b, workload::MemoryKind::weights),
            kMatrices / 16384 * 8452 + 2 * (kParameters - kMatrices + kAdapters));
  EXPECT_LE(at_peak(b, workload::MemoryKind::gradients), kAdapters * 4);
}

TEST_F(Tiny, SequenceRanksShareStatesToo) {
  const Books data = books("{sequence_length: 2048}", "{}");
  for (const std::string plan : {"{ulysses: 8}", "{ring: 8}", "{ulysses: 2, ring: 2, data: 2}"}) {
    EXPECT_EQ(books("{sequence_length: 2048}", plan).rank.gpu.curve.front().bytes, data.rank.gpu.curve.front().bytes)
        << plan;
  }
}

TEST_F(Tiny, TheOptimizerOnTheHostLeavesWeightsOnTheGpu) {
  const Books b = books("{sequence_length: 2048, optimizer: {name: adamw, states: fp32, offload: cpu}}", "{}");
  EXPECT_NEAR(static_cast<double>(b.rank.gpu.curve.front().bytes),
              static_cast<double>(2 * kParameters / 8 + 2 * kSmall * 7 / 8), 100.0);
  // fp32 master, two moments, fp32 and bf16 gradient: 18 B (DeepSpeed stage3.py).
  EXPECT_NEAR(static_cast<double>(b.rank.host.peak), static_cast<double>(18 * kParameters / 8), 100.0);
}

TEST_F(Tiny, OffloadedParametersStandInHostMemory) {
  const Books b = books(
      "{sequence_length: 2048, parameter_offload: cpu, optimizer: {name: adamw, states: fp32, offload: cpu}}", "{}");
  // The norms stay; 18 B of states and 2 of weights (DeepSpeed stage3.py).
  EXPECT_NEAR(static_cast<double>(b.rank.gpu.curve.front().bytes), static_cast<double>(2 * kSmall), 100.0);
  EXPECT_NEAR(static_cast<double>(b.rank.host.peak),
              static_cast<double>(18 * kParameters / 8 + 2 * (kParameters - kSmall) / 8), 100.0);
}

TEST_F(Tiny, AShardThatIsItsOwnMasterTakesSixteenBytes) {
  // FSDP2: fp32 parameter, fp32 gradient, two moments, all of it cut.
  const Books b = books("{sequence_length: 2048, framework: torchtitan}", "{}");
  EXPECT_NEAR(static_cast<double>(b.rank.gpu.curve.front().bytes), static_cast<double>(16 * kParameters / 8), 700.0);
}

// Logits are the largest thing by far: 8 · 4096 of them a token against 512 hidden elements.
TEST_F(Tiny, AtTheLossAllCheckpointsAndAllLogitsAreAlive) {
  const std::int64_t tokens = 65536 / 8;
  const Books b = books("{sequence_length: 65536, recompute: full}", "{ulysses: 8}");
  EXPECT_EQ(at_peak(b, workload::MemoryKind::checkpoints), kLayers * tokens * kHidden * 2) << "L·s·h·e";
  // transformers: fp32 log-softmax 4, its gradient 4, that of nll 4; the bf16 gradient of the logits is one of them.
  EXPECT_EQ(at_peak(b, workload::MemoryKind::logits), 12 * tokens * kVocab);
}

TEST_F(Tiny, OffloadFreesTheCheckpoints) {
  const std::int64_t tokens = 65536 / 8;
  const std::int64_t one = tokens * kHidden * 2;
  const Books kept = books("{sequence_length: 65536, tiled_loss: true}", "{ulysses: 8}");
  const Books moved = books("{sequence_length: 65536, tiled_loss: true, checkpoint_offload: cpu}", "{ulysses: 8}");
  EXPECT_EQ(at_peak(kept, workload::MemoryKind::checkpoints), kLayers * one);
  EXPECT_LE(at_peak(moved, workload::MemoryKind::checkpoints), 2 * one) << "the one in use and one on its way";
  EXPECT_EQ(kept.rank.gpu.peak - moved.rank.gpu.peak,
            kLayers * one - at_peak(moved, workload::MemoryKind::checkpoints));
  EXPECT_EQ(moved.rank.host.peak, (kLayers - 1) * one) << "DeepSpeed keeps the newest";
}

TEST_F(Tiny, CheckpointsOnDrivesPassThroughTwoBuffers) {
  const std::int64_t one = 65536 / 8 * kHidden * 2;
  const Books b = books("{sequence_length: 65536, tiled_loss: true, checkpoint_offload: nvme}", "{ulysses: 8}");
  EXPECT_EQ(b.rank.nvme.peak, (kLayers - 1) * one);
  EXPECT_LE(b.rank.host.peak, 2 * one);
  EXPECT_GE(b.rank.host.peak, one);
}

TEST_F(Tiny, StatesOnDrivesLeaveBuffersInHostMemory) {
  const Books b = books("{sequence_length: 2048, optimizer: {offload: nvme}}", "{}");
  // fp32 master, moments, gradient on the drives; a chunk of all four and the bf16 sum of gradients in host memory.
  EXPECT_NEAR(static_cast<double>(b.rank.nvme.peak), static_cast<double>(16 * kParameters / 8), 100.0);
  EXPECT_GE(static_cast<double>(b.rank.host.peak), static_cast<double>(18 * kParameters / 8) - 100.0);
}

TEST_F(Tiny, OnlySomeLayersRecompute) {
  // Two layers keep an input, two all that backward needs: between the two ends.
  const auto peak = [&](const std::string& recompute) {
    return books("{sequence_length: 65536, tiled_loss: true, recompute: " + recompute + "}", "{ulysses: 8}")
        .rank.gpu.peak;
  };
  const std::int64_t half = peak("{layers: 2}");
  EXPECT_NEAR(static_cast<double>(half), static_cast<double>(peak("full") + peak("none")) / 2,
              0.2 * static_cast<double>(half));
  EXPECT_EQ(peak("{layers: 4}"), peak("full"));
  EXPECT_EQ(peak("{layers: 0}"), peak("none"));
}

TEST_F(Tiny, StatesInOtherTypesTakeTheirBytes) {
  // torchtitan: fp32 shards 4 (as weights), gradients 4, moments 8; in bf16 gradients 2, moments 4; one moment of
  // Lion 4.
  const auto states = [&](const std::string& optimizer) {
    const Books b = books("{sequence_length: 2048, framework: torchtitan, optimizer: " + optimizer + "}", "{}");
    return static_cast<double>(b.rank.gpu.curve.front().bytes);
  };
  const double fp32 = states("{name: adamw}");
  EXPECT_EQ(states("{name: adam}"), fp32);
  EXPECT_NEAR(fp32 - states("{name: lion}"), 4.0 * kParameters / 8, 100.0);
  EXPECT_NEAR(states("{name: lion}"), states("{name: sgd}"), 1.0);
  EXPECT_GE(fp32 - states("{states: bf16}"), (2.0 + 4.0) * kParameters / 8 - 100.0);
}

/// Bytes that are there while attention backward runs and neither before nor after.
std::int64_t attention_scratch(const workload::OpGraph& graph) {
  std::int64_t bytes = 0;
  for (const workload::BlockTemplate& block : graph.templates) {
    for (const workload::Body& body : block.bodies) {
      for (const workload::Op& op : body.ops) {
        for (const TensorId id : op.allocs) {
          if (block.tensor(id).kind == workload::MemoryKind::attention_workspace) {
            EXPECT_EQ(op.name, "attention_backward");
            EXPECT_EQ(std::count(op.frees.begin(), op.frees.end(), id), 1);
            bytes += workload::held_bytes(graph, body, block.tensor(id)).value();
          }
        }
      }
    }
  }
  return bytes;
}

TEST_F(Tiny, AttentionBackwardNeedsItsScratch) {
  // fp32 dQ: 4 B an element of all heads; grouped heads in FlashAttention-2 expand dK and dV to all query heads in bf16
  // (4 B more), in FlashAttention-3 they take fp32 dK and dV of the key/value heads (8 · 8/32 = 2 B).
  const auto scratch = [](const std::string& model, const std::string& kernel) {
    const scenario::Scenario scenario =
        parse({.model = model,
               .training = "{sequence_length: 65536, attention: {implementation: " + kernel + ", mask: causal}}",
               .plans = "[{ulysses: 8}]"});
    return attention_scratch(
        run_stages(scenario, build_machine(scenario), scenario.plans.front(), Stage::parallel)->parallel);
  };
  EXPECT_EQ(scratch(folder_ / "config.json", "flash-attention-2"), 65536 / 8 * kHidden * 4);
  EXPECT_EQ(scratch("llama-3.1-8b", "flash-attention-2"), 65536 / 8 * 4096 * 8);
  EXPECT_EQ(scratch("llama-3.1-8b", "flash-attention-3"), 65536 / 8 * 4096 * 6);
}

TEST_F(Tiny, WithoutRecomputeEveryLayerKeepsItsActivations) {
  const std::int64_t tokens = 65536 / 8;
  const Books full = books("{sequence_length: 65536, recompute: full, tiled_loss: true}", "{ulysses: 8}");
  const Books none = books("{sequence_length: 65536, recompute: none, tiled_loss: true}", "{ulysses: 8}");
  EXPECT_EQ(at_peak(none, workload::MemoryKind::checkpoints), 0);
  // At the least Q, K, V and O before and after their all-to-all, the two norms' outputs and three of the MLP.
  EXPECT_GT(none.rank.gpu.peak - full.rank.gpu.peak, (kLayers - 1) * tokens * 2 * (8 * kHidden + 3 * 1024));
}

TEST(HostMemory, PinnedCheckpointsTakePowersOfTwo) {
  // 31,488 tokens of 4096 bf16 elements are 246 MiB: 256 as the pinned allocator rounds; 32 layers, 8 GPUs a node.
  const scenario::Scenario scenario = load_run("llama3-8b-book-8xh100");
  const auto moved = std::find_if(scenario.plans.begin(), scenario.plans.end(), [](const scenario::PlanEntry& entry) {
    return entry.plan.checkpoint_offload == strategies::Offload::cpu;
  });
  ASSERT_NE(moved, scenario.plans.end());
  const results::Figures f = figures_of(scenario, static_cast<std::size_t>(moved - scenario.plans.begin()));
  constexpr std::int64_t kOne = 251'904 / 8 * 4096 * 2;
  EXPECT_EQ(std::bit_ceil(static_cast<std::uint64_t>(kOne)), 256U << 20);
  EXPECT_EQ(f.peak_host_memory_per_node.value(), (std::int64_t{256} << 20) * 31 * 8) << "the newest stays";
  EXPECT_EQ(figures_of(scenario, 0).peak_host_memory_per_node.value(), 0) << "nothing is moved in the first plan";
}

TEST(HostMemory, PinnedGradientsTakePowersOfTwo) {
  // Llama-3.1-8B on 8 ranks: master and moments 12 B pageable; of 1,003,782,656 gradients 2 B in one pinned block of
  // 2 GiB, and 4 B in sub-groups of at most 1e9: two halves of 1.87 GiB, 2 GiB each.
  const scenario::Scenario scenario =
      parse({.training = "{sequence_length: 8192, optimizer: {offload: cpu}}", .plans = "[{}]"});
  constexpr std::int64_t kShard = 8'030'261'248 / 8;
  EXPECT_EQ(figures_of(scenario).peak_host_memory_per_node.value(), 8 * (12 * kShard + (std::int64_t{6} << 30)));
}

TEST(LoadPeak, IsWhatTheStackReadsBeforeTheFirstStep) {
  const auto peak = [](const std::string& framework, int zero) {
    return *figures_of(parse({.model = "qwen2.5-32b",
                              .training = "{sequence_length: 8192, framework: " + framework +
                                          ", zero: " + std::to_string(zero) + "}",
                              .plans = "[{}]"}))
                .load_peak;
  };
  // transformers under ZeRO-3: shards of bf16 on the GPU, and the whole model, 65.5 GB, in host memory for every rank.
  constexpr double kModel = 32'763'876'352.0;
  const results::LoadPeak deepspeed = peak("deepspeed-hf", 3);
  EXPECT_NEAR(static_cast<double>(deepspeed.host_per_node.value()), 8 * 2 * kModel, 1e6);
  EXPECT_NEAR(static_cast<double>(peak("deepspeed-hf", 1).gpu.value() - deepspeed.gpu.value()), 2 * kModel * 7 / 8, 1e6)
      << "unsharded weights are whole on every GPU";
  EXPECT_NEAR(static_cast<double>(peak("trl-fsdp2", 3).host_per_node.value()), 4 * kModel, 1e6) << "one rank reads";
  EXPECT_EQ(peak("torchtitan", 3).host_per_node.value(), 0) << "each rank reads its shards";
}

TEST(Nvme, IsRefusedByNameWhereANodeHasNone) {
  const auto reasons = [](const std::string& node) {
    const scenario::Scenario scenario = parse({.cluster = "{node: " + node + "}",
                                               .training = "{sequence_length: 8192, optimizer: {offload: nvme}}",
                                               .plans = "[{}]"});
    return check(scenario, scenario.plans.front());
  };
  EXPECT_TRUE(reasons("dgx-h100").empty());
  ASSERT_EQ(reasons("gh200").size(), 1U);
  EXPECT_EQ(reasons("gh200")[0].reason, "nvme: the catalogue knows no drives of node gh200");
}

TEST(Nvme, TakesTheTimeOfItsReadsAndWrites) {
  // 8B: 16 B a parameter read at 48 GB/s, 12 written at 26 GB/s, nothing overlapped, against states in host memory.
  const auto optimizer = [](const std::string& where) {
    const results::Figures f = figures_of(
        parse({.training = "{sequence_length: 8192, optimizer: {offload: " + where + "}}", .plans = "[{ulysses: 8}]"}));
    return std::pair(seconds(f.step_time), f.nvme);
  };
  const auto [in_memory, none] = optimizer("cpu");
  const auto [on_drives, use] = optimizer("nvme");
  constexpr double kParameters8B = 8'030'261'248.0;
  EXPECT_FALSE(none);
  EXPECT_NEAR(static_cast<double>(use->peak_per_node.value()), 16 * kParameters8B, 1e6);
  EXPECT_EQ(use->capacity_per_node.value(), 30'720'000'000'000);
  const double swaps = kParameters8B * (16 / 48e9 + 12 / 26e9);
  EXPECT_NEAR(on_drives - in_memory, swaps, 0.25 * swaps) << "and 4 B of gradients beside backward";
}

TEST_F(Tiny, ChunksOfTheSequenceWaitInHostMemory) {
  // One layer's at a time, under full recompute, 65,536/8 tokens a rank: Q, K, V, O and the output's gradient in bf16,
  // the queries' gradient in fp32, 14 B for each of 512; the statistics of 8 heads, 4 B each.
  const Books chunked = books("{sequence_length: 64Ki, recompute: full}", "{ulysses: 8, sequence_chunk: 8Ki}");
  EXPECT_EQ(chunked.rank.host.peak, 8192 * (14 * kHidden + 4 * 8));
}

TEST(Chunks, OfHeadsOrTokensHoldLessOfALongSequence) {
  // In a stack that waits for its exchanges; DeepSpeed's host runs ahead of them, and their buffers pile up.
  const auto peak = [](const std::string& options) {
    const scenario::Scenario scenario =
        parse({.training = "{sequence_length: 1Mi, checkpoint_offload: cpu, tiled_mlp: true, tiled_loss: true, "
                           "framework: untied-ulysses}",
               .plans = "[{ulysses: 8" + options + "}]"});
    const auto stages = run_stages(scenario, build_machine(scenario), scenario.plans.front(), Stage::timeline);
    return memory::account(stages->parallel, stages->schedules.front(), stages->timeline.ranks.front()).gpu.peak;
  };
  const std::int64_t whole = peak("");
  EXPECT_LT(peak(", head_chunks: 2"), whole);
  EXPECT_LE(peak(", head_chunks: 4"), peak(", head_chunks: 2"));
  EXPECT_LT(peak(", sequence_chunk: 64Ki"), whole);
}

}  // namespace
}  // namespace ulysim::study
