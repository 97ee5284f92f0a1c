// ZeRO (arXiv 1910.02054 §7) per layer over n = data × sequence ranks; W elements of the layer's matrices, `small` the
// norms (under DeepSpeed's persistence threshold of 1e5 elements: never cut, never gathered, but reduced):
//   stage 3      gathers (n−1)/n·2·W forward and once more backward, which recompute shares
//   stage 2, 3   reduce-scatters (n−1)/n·w·(W + small) every micro-batch; w: 2 bytes on the wire, 4 (fp32) when the
//                sequence is sharded (DeepSpeed engine.py, seq_parallel_communication_data_type)
//   stage 0, 1   all-reduces (2×) or reduce-scatters the accumulated gradients once, at the last micro-batch
//   stage 1, 2   all-gather all weights once, after the optimizer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

// llama-3.1-8b, one layer: q and o 4096² each, k and v 4096·1024 each, three of 4096·14336; two norms.
constexpr double kW = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336;
constexpr double kSmall = 2 * 4096;

Plan zero(std::int64_t stage, MeshAxis axis, std::int64_t degree) {
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(axis, degree);
  plan.zero = stage;
  plan.accumulation = 2;
  return plan;
}

constexpr lab::Asked kGatherForward{.phase = Phase::forward, .purpose = Purpose::parameters};
constexpr lab::Asked kGatherBackward{.phase = Phase::backward, .purpose = Purpose::parameters};
constexpr lab::Asked kReduceEach{.phase = Phase::backward, .purpose = Purpose::gradients};
constexpr lab::Asked kReduceLast{
    .phase = Phase::backward, .purpose = Purpose::gradients, .when = When::last_micro_batch};

double gathered_after_optimizer(const OpGraph& graph) {
  return lab::sent(graph, graph.templates.back(), {.phase = Phase::update, .purpose = Purpose::parameters});
}

TEST(Zero, stage_3_gathers_twice_and_scatters_every_micro_batch) {
  const OpGraph graph = lab::bench("llama-3.1-8b", zero(3, MeshAxis::data, 8)).after({"data", "zero"});
  EXPECT_EQ(lab::sent(graph, kGatherForward), 7.0 / 8 * 2 * kW);
  EXPECT_EQ(lab::sent(graph, kGatherBackward), 7.0 / 8 * 2 * kW);
  EXPECT_EQ(lab::sent(graph, kReduceEach), 7.0 / 8 * 2 * (kW + kSmall));
  EXPECT_EQ(lab::sent(graph, kReduceLast), 0);
  EXPECT_EQ(gathered_after_optimizer(graph), 0);
}

TEST(Zero, recompute_shares_the_gather_of_backward) {
  if (!lab::has("recompute")) {
    GTEST_SKIP() << "recompute is not in the catalogue";
  }
  Plan plan = zero(3, MeshAxis::data, 8);
  plan.recompute = Recompute::full;
  lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  const double once = 7.0 / 8 * 2 * kW;
  EXPECT_EQ(lab::sent(bench.after({"data", "recompute", "zero"}), kGatherBackward), once);
  // A layer beyond the reuse distance is gathered for recompute and again for backward.
  bench.framework.reuse_distance_elements.value = 100'000'000;
  EXPECT_EQ(lab::sent(bench.after({"data", "recompute", "zero"}), kGatherBackward), 2 * once);
}

TEST(Zero, stage_2_scatters_every_micro_batch_and_gathers_after_the_optimizer) {
  const lab::Bench bench = lab::bench("llama-3.1-8b", zero(2, MeshAxis::data, 8));
  const OpGraph graph = bench.after({"data", "zero"});
  EXPECT_EQ(lab::sent(graph, kGatherForward) + lab::sent(graph, kGatherBackward), 0);
  EXPECT_EQ(lab::sent(graph, kReduceEach), 7.0 / 8 * 2 * (kW + kSmall));
  EXPECT_EQ(gathered_after_optimizer(graph), 7.0 / 8 * 2 * static_cast<double>(count_parameters(bench.model).total));
}

TEST(Zero, stage_1_scatters_once_a_step) {
  const lab::Bench bench = lab::bench("llama-3.1-8b", zero(1, MeshAxis::data, 8));
  const OpGraph graph = bench.after({"data", "zero"});
  EXPECT_EQ(lab::sent(graph, kReduceEach), 0);
  EXPECT_EQ(lab::sent(graph, kReduceLast), 7.0 / 8 * 2 * (kW + kSmall));
  EXPECT_EQ(gathered_after_optimizer(graph), 7.0 / 8 * 2 * static_cast<double>(count_parameters(bench.model).total));
}

TEST(Zero, stage_0_reduces_whole_gradients_once_a_step) {
  const OpGraph graph = lab::bench("llama-3.1-8b", zero(0, MeshAxis::data, 8)).after({"data", "zero"});
  EXPECT_EQ(lab::sent(graph, kReduceEach), 0);
  EXPECT_EQ(lab::sent(graph, kReduceLast), 2 * 7.0 / 8 * 2 * (kW + kSmall));
  EXPECT_EQ(gathered_after_optimizer(graph), 0);
}

TEST(Zero, gradients_travel_in_fp32_where_the_sequence_is_sharded) {
  if (!lab::has("ulysses")) {
    GTEST_SKIP() << "nothing shards the sequence";
  }
  for (const std::int64_t stage : {2, 3}) {
    const OpGraph graph = lab::bench("llama-3.1-8b", zero(stage, MeshAxis::ulysses, 8)).after({"ulysses", "zero"});
    EXPECT_EQ(lab::sent(graph, kReduceEach), 7.0 / 8 * 4 * (kW + kSmall)) << "stage " << stage;
  }
  for (const std::int64_t stage : {0, 1}) {
    const OpGraph graph = lab::bench("llama-3.1-8b", zero(stage, MeshAxis::ulysses, 8)).after({"ulysses", "zero"});
    EXPECT_EQ(lab::sent(graph, kReduceLast), (stage == 0 ? 2 : 1) * 7.0 / 8 * 4 * (kW + kSmall)) << "stage " << stage;
  }
}

TEST(Zero, shards_over_data_and_sequence_ranks_together) {
  if (!lab::has("ulysses")) {
    GTEST_SKIP() << "nothing shards the sequence";
  }
  Plan plan = zero(3, MeshAxis::ulysses, 4);
  plan.mesh.set_size(MeshAxis::data, 2);
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"data", "ulysses", "zero"});
  EXPECT_EQ(lab::sent(graph, kGatherForward), 7.0 / 8 * 2 * kW) << "one group of 8, not of 2 or 4";
  const BlockTemplate& layer = lab::layer_of(graph);
  for (const Tensor& each : layer.tensors) {
    if (each.name == "w_q") {
      EXPECT_EQ(local_elements(each, graph.mesh), 4096 * 4096 / 8);
    }
    if (each.name == "w_small") {
      EXPECT_EQ(local_elements(each, graph.mesh), 2 * 4096) << "persistent: whole everywhere";
    }
  }
}

TEST(Zero, a_framework_that_prefetches_nothing_does_not_block_itself) {
  // Backward holds the attention's weights while it gathers the MLP's: two units are needed at once, however few may
  // be fetched ahead.
  if (!lab::has("recompute")) {
    GTEST_SKIP() << "recompute is not in the catalogue";
  }
  Plan plan = zero(3, MeshAxis::data, 8);
  plan.recompute = Recompute::full;
  lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  bench.framework.prefetch_units.value = 0;
  EXPECT_THAT(verify(bench.after({"data", "recompute", "zero"})), testing::IsEmpty());
}

TEST(Zero, adapters_are_all_whose_gradients_and_states_are_shared) {
  // llama-3.1-8b, rank 16 on q and v: 16·(8192 + 5120) elements a layer. 8 ranks scatter their bf16 gradients.
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(MeshAxis::data, 8);
  plan.adapters = Adapters{.targets = {"q_proj", "v_proj"}};
  plan.zero = 2;
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"data", "zero"});
  constexpr std::int64_t kLayer = 16 * (8192 + 5120);
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::backward, .purpose = Purpose::gradients}), 7.0 / 8 * kLayer * 2);
  for (const Tensor& tensor : graph.templates.back().tensors) {
    if (tensor.kind == MemoryKind::optimizer_states) {
      EXPECT_EQ(local_elements(tensor, graph.mesh), 2 * kLayer / 8);
    }
  }
}

TEST(Zero, gathers_four_bit_weights_in_four_bits) {
  // Frozen or not, weights are sharded and gathered: 4096² of q and 4096·1024 of k, 16,384 elements in 8452 bytes.
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(MeshAxis::data, 8);
  plan.adapters = Adapters{.base = BaseWeights::nf4};
  plan.zero = 3;
  lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  bench.framework.persistence_elements.value = 16 * 18432;  // adapters and norms are never cut
  const OpGraph graph = bench.after({"data", "zero"});
  constexpr double kElements = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336;
  EXPECT_DOUBLE_EQ(lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::parameters}),
                   7.0 / 8 * kElements * 8452 / 16384);
}

TEST(Zero, gathers_in_one_byte_where_the_stack_casts_its_shards) {
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(MeshAxis::data, 8);
  plan.gemm_precision = kernel::Precision::fp8;
  plan.zero = 3;
  lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  bench.framework.persistence_elements.value = 100'000;
  constexpr double kElements = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336;
  const lab::Asked forward{.phase = Phase::forward, .purpose = Purpose::parameters};
  for (const std::int64_t cast : {0, 1}) {
    bench.framework.quantised_gather.value = cast;
    EXPECT_DOUBLE_EQ(lab::sent(bench.after({"data", "zero"}), forward), 7.0 / 8 * kElements * (cast == 1 ? 1 : 2));
  }
}

}  // namespace
}  // namespace ulysim::strategies
