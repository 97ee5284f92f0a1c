// ZeRO (arXiv 1910.02054 §7) per layer over n = data × sequence ranks; W elements of the layer's matrices, `small` the
// norms (under the persistence threshold of 10·hidden elements that transformers sets: never cut, never gathered, but
// reduced):
//   stage 3      gathers (n−1)/n·2·W forward and once more backward, which recompute shares
//   stage 2, 3   reduce-scatters (n−1)/n·w·(W + small) every micro-batch; w: 2 bytes on the wire, 4 (fp32) when the
//                sequence is sharded (DeepSpeed engine.py, seq_parallel_communication_data_type)
//   stage 0, 1   all-reduces (2×) or reduce-scatters the accumulated gradients once: layer by layer in the last
//                micro-batch, or all of them after it (overlap_gradient_reduction)
//   stage 1, 2   all-gather all weights once, after the optimizer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/strategies/zero_parts.h"
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

const BlockTemplate& template_of(const OpGraph& graph, BlockKind kind) {
  return *std::find_if(graph.templates.begin(), graph.templates.end(),
                       [kind](const BlockTemplate& block) { return block.kind == kind; });
}

double gathered_after_optimizer(const OpGraph& graph) {
  return lab::sent(graph, template_of(graph, BlockKind::optimizer),
                   {.phase = Phase::update, .purpose = Purpose::parameters});
}

/// What a step of one micro-batch sends for `purpose` in all, by template.
double sent_in_all(const OpGraph& graph, Purpose purpose) {
  double sum = 0;
  for (const BlockTemplate& block : graph.templates) {
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
      for (const When when : {When::every_micro_batch, When::first_micro_batch, When::last_micro_batch}) {
        sum += static_cast<double>(block.instances) *
               lab::sent(graph, block, {.phase = phase, .purpose = purpose, .when = when});
      }
    }
  }
  return sum;
}

const Tensor& tensor_of(const BlockTemplate& block, std::string_view name) {
  return *std::find_if(block.tensors.begin(), block.tensors.end(),
                       [name](const Tensor& tensor) { return tensor.name == name; });
}

lab::Bench with_overlap(lab::Bench bench) {
  bench.framework.overlap_gradient_reduction.value = 1;
  return bench;
}

lab::Bench stack(std::string_view framework, Plan plan, std::string_view model = "llama-3.1-8b") {
  lab::Bench bench = lab::bench(model, std::move(plan));
  bench.framework = lab::framework(framework);
  return bench;
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
  const lab::Bench bench = with_overlap(lab::bench("llama-3.1-8b", zero(1, MeshAxis::data, 8)));
  const OpGraph graph = bench.after({"data", "zero"});
  EXPECT_EQ(lab::sent(graph, kReduceEach), 0);
  EXPECT_EQ(lab::sent(graph, kReduceLast), 7.0 / 8 * 2 * (kW + kSmall));
  EXPECT_EQ(gathered_after_optimizer(graph), 7.0 / 8 * 2 * static_cast<double>(count_parameters(bench.model).total));
}

TEST(Zero, stage_0_reduces_whole_gradients_once_a_step) {
  const OpGraph graph = with_overlap(lab::bench("llama-3.1-8b", zero(0, MeshAxis::data, 8))).after({"data", "zero"});
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
    const OpGraph graph =
        with_overlap(lab::bench("llama-3.1-8b", zero(stage, MeshAxis::ulysses, 8))).after({"ulysses", "zero"});
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

TEST(Zero, without_overlap_everything_is_reduced_once_backward_is_done) {
  // DeepSpeed, stages 0 and 1: between the last backward and the optimizer, in the order of the program.
  for (const std::int64_t stage : {0, 1}) {
    const lab::Bench bench = lab::bench("llama-3.1-8b", zero(stage, MeshAxis::data, 8));
    const OpGraph graph = bench.after({"data", "zero"});
    EXPECT_EQ(lab::sent(graph, kReduceEach) + lab::sent(graph, kReduceLast), 0);
    const auto& program = graph.roles.front().program;
    const BlockTemplate& reduction = graph.of(program[program.size() - 2]);
    EXPECT_EQ(lab::sent(graph, reduction, {.phase = Phase::update, .purpose = Purpose::gradients}),
              (stage == 0 ? 2 : 1) * 7.0 / 8 * 2 * static_cast<double>(count_parameters(bench.model).total));
    EXPECT_EQ(graph.of(program.back()).kind, BlockKind::optimizer);
    EXPECT_THAT(verify(graph), testing::IsEmpty());
  }
}

TEST(Zero, without_overlap_stage_2_holds_up_the_kernels) {
  lab::Bench bench = lab::bench("llama-3.1-8b", zero(2, MeshAxis::data, 8));
  for (const std::int64_t overlap : {0, 1}) {
    bench.framework.overlap_gradient_reduction.value = overlap;
    const OpGraph graph = bench.after({"data", "zero"});
    for (const Op& op : lab::layer_of(graph).body(Phase::backward).ops) {
      if (op.name.starts_with("accumulate")) {
        EXPECT_EQ(op.stream, overlap == 0 ? Stream::compute : Stream::zero_reduce) << op.name;
      }
    }
  }
}

TEST(Zero, gradients_travel_in_buckets) {
  // hidden² elements in transformers' configuration; a larger matrix travels alone.
  const lab::Bench bench = lab::bench("llama-3.1-8b", zero(3, MeshAxis::data, 8));
  const OpGraph graph = bench.after({"data", "zero"});
  const BlockTemplate& layer = lab::layer_of(graph);
  for (const Op& op : layer.body(Phase::backward).ops) {
    if (op.purpose == Purpose::gradients) {
      std::int64_t elements = 0;
      for (const TensorId id : op.reads) {
        elements += local_elements(layer.tensor(id), graph.mesh);
      }
      EXPECT_TRUE(op.reads.size() == 1 || elements <= 4096 * 4096 + 2 * 4096) << op.name;
    }
  }
  // gate, up, down; q, k with v, o with the norms, which ask for no bucket.
  EXPECT_EQ(lab::count(layer, kReduceEach, CollectiveKind::reduce_scatter), 6);
}

TEST(Zero, kernels_wait_for_old_reductions) {
  // FSDP2: a layer's backward ends when the reduce-scatter of the layer before is done: one under way, one forming.
  const auto window = [](std::string_view framework) {
    const OpGraph graph = stack(framework, zero(3, MeshAxis::data, 8)).after({"data", "zero"});
    EXPECT_THAT(verify(graph), testing::IsEmpty());
    int held = 0;
    for (const Op& op : lab::layer_of(graph).body(Phase::backward).ops) {
      held += op.acquire == CreditPool::reductions ? 1 : 0;
      held -= op.release.contains(CreditPool::reductions) ? 1 : 0;
      EXPECT_TRUE(held == 0 || held == 1) << op.name;
      EXPECT_TRUE(op.acquire != CreditPool::reductions || op.stream == Stream::compute) << op.name;
    }
    EXPECT_EQ(held, 0);
    return graph.credit_windows[static_cast<std::size_t>(CreditPool::reductions)];
  };
  EXPECT_EQ(window("torchtitan"), 2);
  // DeepSpeed: two buckets of hidden² are less than the MLP (176M elements); two of 5e8 are five of it.
  EXPECT_EQ(window("deepspeed-hf"), 2);
  EXPECT_EQ(window("arctic-training"), 6);
}

TEST(Zero, a_bucket_is_what_the_stack_makes_it) {
  const Plan plan = zero(3, MeshAxis::data, 8);
  const auto bucket = [&plan](std::string_view framework, std::string_view model) {
    const lab::Bench bench = stack(framework, plan, model);
    return reduce_bucket(bench.context(), bench.logical());
  };
  EXPECT_EQ(bucket("deepspeed-hf", "llama-3.1-8b"), 4096 * 4096);
  EXPECT_EQ(bucket("arctic-training", "llama-3.1-8b"), 500'000'000);
  EXPECT_EQ(bucket("torchtitan", "llama-3.1-8b"), static_cast<std::int64_t>(kW + kSmall)) << "the layer";
  const lab::Bench small = lab::bench("gpt2", plan);
  EXPECT_EQ(bucket("arctic-training", "gpt2"), count_parameters(small.model).total) << "no more than there is";
}

// FSDP2: fp32 shards that are their own master, cast to bf16 and gathered a layer at a time, norms and all; gradients
// reduced in fp32 once a layer (torchtitan).
TEST(Zero, a_layer_is_one_unit_where_the_stack_makes_it_one) {
  const OpGraph graph = stack("torchtitan", zero(3, MeshAxis::data, 8)).after({"data", "zero"});
  const BlockTemplate& layer = lab::layer_of(graph);
  EXPECT_EQ(lab::count(layer, kGatherForward, CollectiveKind::all_gather), 1);
  EXPECT_EQ(lab::count(layer, kGatherBackward, CollectiveKind::all_gather), 1);
  EXPECT_EQ(lab::count(layer, kReduceEach, CollectiveKind::reduce_scatter), 1);
  EXPECT_EQ(lab::sent(graph, kGatherForward), 7.0 / 8 * 2 * (kW + kSmall)) << "bf16, though the shard is fp32";
  EXPECT_EQ(lab::sent(graph, kReduceEach), 7.0 / 8 * 4 * (kW + kSmall));
  EXPECT_EQ(local_bytes(tensor_of(layer, "w_q"), graph.mesh).value(), 4096 * 4096 / 8 * 4);
  for (const Tensor& each : layer.tensors) {
    if (each.kind == MemoryKind::gathered_parameters) {
      EXPECT_EQ(each.element_bytes, 2) << each.name;
    }
  }
}

TEST(Zero, the_last_unit_may_stay_gathered) {
  // Final norm and head: 4096 + 4096·128256 elements, gathered once or twice.
  constexpr double kHead = 4096.0 + 4096.0 * 128256;
  lab::Bench bench = stack("torchtitan", zero(3, MeshAxis::data, 8));
  for (const std::int64_t stays : {0, 1}) {
    bench.framework.last_unit_stays_gathered.value = stays;
    const OpGraph graph = bench.after({"data", "zero"});
    const BlockTemplate& head = template_of(graph, BlockKind::head);
    EXPECT_EQ(lab::sent(graph, head, kGatherForward), 7.0 / 8 * 2 * kHead);
    EXPECT_EQ(lab::sent(graph, head, kGatherBackward), stays == 0 ? 7.0 / 8 * 2 * kHead : 0);
    EXPECT_GT(lab::sent(graph, kGatherBackward), 0) << "the layers are gathered again";
    EXPECT_THAT(verify(graph), testing::IsEmpty());
  }
}

TEST(Zero, what_has_no_unit_of_its_own_stays_gathered_in_the_root) {
  // FSDP2 wraps the blocks and the model around them: embedding and head, 128256 · 4096 each, and the last norm are
  // gathered in forward and never cut again within the step; blocks come and go.
  lab::Bench bench = stack("torchtitan", zero(3, MeshAxis::data, 8));
  bench.framework.root_unit_stays_gathered.value = 1;
  const OpGraph graph = bench.after({"data", "zero"});
  double kept = 0;
  for (const BlockTemplate& block : graph.templates) {
    for (const Tensor& tensor : block.tensors) {
      kept += tensor.kind == MemoryKind::gathered_parameters && tensor.persistent
                  ? static_cast<double>(local_bytes(tensor, graph.mesh).value())
                  : 0;
    }
  }
  EXPECT_NEAR(kept, 2 * (2.0 * 128256 * 4096 + 4096), 2.0) << "one element stands for no table of positions";
  EXPECT_THAT(verify(graph), testing::IsEmpty());
}

TEST(Zero, a_shard_that_is_its_own_master_is_cut_from_stage_1_on) {
  // FSDP's reshard_after_forward=False: gathered once a micro-batch and kept, nothing handed out after the optimizer.
  for (const std::int64_t stage : {1, 2}) {
    const OpGraph graph = stack("trl-fsdp2", zero(stage, MeshAxis::data, 8)).after({"data", "zero"});
    EXPECT_EQ(lab::sent(graph, kGatherForward), 7.0 / 8 * 2 * (kW + kSmall));
    EXPECT_EQ(lab::sent(graph, kGatherBackward), 0);
    EXPECT_EQ(gathered_after_optimizer(graph), 0);
    EXPECT_EQ(local_elements(tensor_of(lab::layer_of(graph), "w_q"), graph.mesh), 4096 * 4096 / 8);
    EXPECT_THAT(verify(graph), testing::IsEmpty());
  }
}

TEST(Zero, under_a_pipeline_stage_1_gathers_its_shards_once_a_step) {
  // torchtitan: reshard_after_forward=False, and PyTorch's stages reshard behind the last micro-batch only. However
  // many micro-batches are on their way, the weights are there once: bf16, whole.
  Plan plan = zero(1, MeshAxis::data, 8);
  plan.mesh.set_size(MeshAxis::pipeline, 2);
  plan.accumulation = 4;
  const OpGraph graph = stack("torchtitan", plan).after({"pipeline", "data", "zero", "schedule"});
  lab::Asked first = kGatherForward;
  first.when = When::first_micro_batch;
  EXPECT_EQ(lab::sent(graph, first), 7.0 / 8 * 2 * (kW + kSmall));
  EXPECT_EQ(lab::sent(graph, kGatherForward), 0);
  EXPECT_EQ(lab::sent(graph, kGatherBackward), 0);
  double kept = 0;
  for (const Tensor& tensor : lab::layer_of(graph).tensors) {
    if (tensor.kind == MemoryKind::gathered_parameters && tensor.persistent) {
      kept += static_cast<double>(local_bytes(tensor, graph.mesh).value());
    }
  }
  EXPECT_EQ(kept, 2 * (kW + kSmall));
  EXPECT_THAT(verify(graph), testing::IsEmpty());
}

TEST(Zero, updated_weights_may_be_gathered_in_the_next_forward) {
  // Megatron's overlap_param_gather: a step of two micro-batches gathers as much as after the optimizer, in the first.
  lab::Bench bench = stack("nemo", zero(1, MeshAxis::data, 8));
  const OpGraph graph = bench.after({"data", "zero"});
  const auto parameters = static_cast<double>(count_parameters(bench.model).total);
  EXPECT_EQ(
      lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::parameters, .when = When::first_micro_batch}),
      7.0 / 8 * 2 * (kW + kSmall));
  EXPECT_EQ(gathered_after_optimizer(graph), 0);
  EXPECT_EQ(sent_in_all(graph, Purpose::parameters), 7.0 / 8 * 2 * parameters);
  EXPECT_THAT(verify(graph), testing::IsEmpty());
  bench.framework.overlap_parameter_gather.value = 0;
  EXPECT_EQ(gathered_after_optimizer(bench.after({"data", "zero"})), 7.0 / 8 * 2 * parameters);
}

TEST(Zero, the_gradients_of_a_model_are_reduced_once) {
  // Where embedding and head share a table it has one gradient: (n−1)/n·w·parameters in all, as without sharing. The
  // embedding of a model without position embeddings counts one element for nothing.
  for (const std::string_view model : {"llama-3.1-8b", "gpt2", "gemma-2-9b"}) {
    for (const std::int64_t stage : {0, 1, 2, 3}) {
      for (const std::int64_t overlap : {0, 1}) {
        lab::Bench bench = lab::bench(model, zero(stage, MeshAxis::data, 8));
        bench.framework.overlap_gradient_reduction.value = overlap;
        const OpGraph graph = bench.after({"data", "zero"});
        const auto parameters = static_cast<double>(count_parameters(bench.model).total);
        EXPECT_NEAR(sent_in_all(graph, Purpose::gradients), (stage == 0 ? 2 : 1) * 7.0 / 8 * 2 * parameters, 8.0)
            << model << " stage " << stage << " overlap " << overlap;
        EXPECT_THAT(verify(graph), testing::IsEmpty());
      }
    }
  }
}

// Hybrid sharding, k replicas over n ranks, g = n/k: gathers (g−1)/g, reduce-scatters (g−1)/g of the gradients and
// all-reduces (2(k−1)/k) the shard of 1/g that it leaves.
TEST(Zero, replicas_share_what_their_groups_have_scattered) {
  for (const MeshAxis axis : {MeshAxis::data, MeshAxis::ulysses}) {
    for (const std::int64_t stage : {1, 3}) {
      lab::Bench bench = with_overlap(lab::bench("llama-3.1-8b", zero(stage, axis, 8)));
      bench.framework.sequence_parallel_gradient_wire_bytes.value = 2;
      bench.plan.mesh.set_size(MeshAxis::replicate, 2);
      ASSERT_THAT(check(bench.whole_plan()), testing::IsEmpty());
      const OpGraph graph = bench.after({name(axis), "zero"});
      const double reduced = 3.0 / 4 * 2 * (kW + kSmall) + 2 * 1.0 / 2 * 2 * (kW + kSmall) / 4;
      EXPECT_EQ(lab::sent(graph, stage == 3 ? kReduceEach : kReduceLast), reduced);
      EXPECT_EQ(lab::sent(graph, kGatherForward), stage == 3 ? 3.0 / 4 * 2 * kW : 0);
      const auto parameters = static_cast<double>(count_parameters(bench.model).total);
      EXPECT_EQ(gathered_after_optimizer(graph), stage == 3 ? 0 : 3.0 / 4 * 2 * parameters);
      const BlockTemplate& layer = lab::layer_of(graph);
      EXPECT_EQ(local_elements(tensor_of(layer, "w_q"), graph.mesh), 4096 * 4096 / (stage == 3 ? 4 : 1));
      EXPECT_EQ(local_elements(tensor_of(template_of(graph, BlockKind::optimizer), "optimizer_states"), graph.mesh),
                static_cast<std::int64_t>(parameters) / 4);
      EXPECT_THAT(verify(graph), testing::IsEmpty());
    }
  }
}

TEST(Zero, replicas_hold_whole_experts_groups) {
  // 8 ranks, experts over 2, 2 replicas: an expert lies on 4 ranks, 2 of each shard group of 4.
  lab::Bench bench = lab::bench("mixtral-8x7b", zero(3, MeshAxis::data, 8));
  bench.plan.mesh.set_size(MeshAxis::expert, 2);
  bench.plan.mesh.set_size(MeshAxis::replicate, 2);
  const OpGraph graph = bench.after({"data", "expert", "zero"});
  EXPECT_THAT(verify(graph), testing::IsEmpty());
  bool seen = false;
  for (const Tensor& each : lab::layer_of(graph).tensors) {
    if (each.parameter && each.find(Dim::experts) != nullptr) {
      seen = true;
      EXPECT_EQ(local_elements(each, graph.mesh) * 4, global_elements(each)) << each.name;
    }
  }
  EXPECT_TRUE(seen);
}

TEST(Zero, replicas_that_fit_no_group_are_refused) {
  const auto reasons = [](std::int64_t stage, std::int64_t replicas, std::int64_t expert) {
    lab::Bench bench = lab::bench("mixtral-8x7b", zero(stage, MeshAxis::data, 8));
    bench.plan.mesh.set_size(MeshAxis::replicate, replicas);
    bench.plan.mesh.set_size(MeshAxis::expert, expert);
    std::string text;
    for (const Infeasible& each : check(bench.whole_plan())) {
      text += each.reason + " > " + each.suggestion + "\n";
    }
    return text;
  };
  EXPECT_EQ(reasons(3, 2, 1), "");
  EXPECT_EQ(reasons(3, 2, 4), "");
  EXPECT_EQ(reasons(3, 3, 1), "data_replicate 3: does not divide the 8 ranks of data × sequence > data_replicate 2\n");
  EXPECT_EQ(reasons(3, 8, 1),
            "data_replicate 8: groups of one of 8 ranks, in which nothing is sharded > data_replicate 4\n");
  EXPECT_EQ(reasons(3, 4, 4), "data_replicate 4: expert 4 does not divide its shard groups of 2 > data_replicate 2\n");
  EXPECT_EQ(reasons(0, 2, 1), "data_replicate 2: ZeRO-0 shards nothing, all ranks are replicas > zero: 3\n");
}

// Shards in host memory (ZeRO-Infinity, arXiv 2104.07857; DeepSpeed offload_param): each gather is preceded by a copy
// of the shard, W/n elements of 2 bytes, forward and backward.
TEST(Zero, offloaded_shards_are_copied_in_before_each_gather) {
  Plan plan = zero(3, MeshAxis::data, 8);
  plan.parameter_offload = Offload::cpu;
  const lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  const OpGraph graph = bench.after({"data", "zero"});
  const BlockTemplate& layer = lab::layer_of(graph);
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    std::int64_t copied = 0;
    for (const Op& op : layer.body(phase).ops) {
      if (op.purpose == Purpose::parameter_offload) {
        EXPECT_EQ(op.stream, Stream::host_to_device);
        copied += payload_of(graph, layer, layer.body(phase), op).value();
      }
    }
    EXPECT_EQ(copied, static_cast<std::int64_t>(2 * kW / 8)) << name(phase);
  }
  EXPECT_EQ(lab::sent(graph, kGatherForward), 7.0 / 8 * 2 * kW) << "as without";
  EXPECT_EQ(tensor_of(layer, "w_q").space, Space::host);
  EXPECT_EQ(tensor_of(layer, "w_small").space, Space::gpu) << "below the threshold";
  // The optimizer on the GPU sends what it has updated: 2 bytes a parameter of the shard.
  const BlockTemplate& optimizer = template_of(graph, BlockKind::optimizer);
  const Op& store = optimizer.body(Phase::update).ops.back();
  EXPECT_EQ(store.stream, Stream::device_to_host);
  EXPECT_EQ(payload_of(graph, optimizer, optimizer.body(Phase::update), store).value(),
            2 * ((count_parameters(bench.model).total + 7) / 8));
  EXPECT_THAT(verify(graph), testing::IsEmpty());
}

TEST(Zero, parameters_are_offloaded_on_a_single_gpu_too) {
  Plan plan = zero(3, MeshAxis::data, 1);
  plan.parameter_offload = Offload::cpu;
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"zero"});
  const BlockTemplate& layer = lab::layer_of(graph);
  std::int64_t copied = 0;
  for (const Op& op : layer.body(Phase::forward).ops) {
    copied +=
        op.purpose == Purpose::parameter_offload ? payload_of(graph, layer, layer.body(Phase::forward), op).value() : 0;
  }
  EXPECT_EQ(copied, static_cast<std::int64_t>(2 * kW));
  EXPECT_EQ(lab::sent(graph, kGatherForward), 0);
  EXPECT_THAT(verify(graph), testing::IsEmpty());
}

TEST(Zero, shards_on_drives_pass_through_host_memory) {
  Plan plan = zero(3, MeshAxis::data, 8);
  plan.parameter_offload = Offload::nvme;
  for (const Offload optimizer : {Offload::none, Offload::cpu}) {
    plan.optimizer_offload = optimizer;
    const lab::Bench bench = lab::bench("llama-3.1-8b", plan);
    ASSERT_THAT(check(bench.whole_plan()), testing::IsEmpty());
    const OpGraph graph = bench.after({"data", "zero", "optimizer-offload"});
    const BlockTemplate& layer = lab::layer_of(graph);
    EXPECT_EQ(tensor_of(layer, "w_q").space, Space::nvme);
    std::map<Stream, std::int64_t> copied;
    for (const Op& op : layer.body(Phase::forward).ops) {
      if (op.purpose == Purpose::parameter_offload) {
        copied[op.stream] += payload_of(graph, layer, layer.body(Phase::forward), op).value();
      }
    }
    EXPECT_EQ(copied[Stream::nvme_read], static_cast<std::int64_t>(2 * kW / 8));
    EXPECT_EQ(copied[Stream::host_to_device], static_cast<std::int64_t>(2 * kW / 8));
    // Once a step the updated shard is written: 2 bytes a parameter.
    const BlockTemplate& optimizer_block = template_of(graph, BlockKind::optimizer);
    std::int64_t written = 0;
    for (const Op& op : optimizer_block.body(Phase::update).ops) {
      if (op.stream == Stream::nvme_write) {
        written += payload_of(graph, optimizer_block, optimizer_block.body(Phase::update), op).value();
      }
    }
    EXPECT_EQ(written, 2 * ((count_parameters(bench.model).total + 7) / 8));
    EXPECT_THAT(verify(graph), testing::IsEmpty());
  }
  plan.optimizer_offload = Offload::cpu;
  const auto reasons = check(stack("torchtitan", plan).whole_plan());
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons.front().suggestion, "parameter_offload: cpu");
}

TEST(Zero, parameter_offload_is_refused_where_weights_are_not_cut) {
  Plan plan = zero(2, MeshAxis::data, 8);
  plan.parameter_offload = Offload::cpu;
  const auto stage = check(stack("deepspeed-hf", plan).whole_plan());
  ASSERT_EQ(stage.size(), 1U);
  EXPECT_EQ(stage.front().suggestion, "zero: 3");
  plan.zero = 3;
  EXPECT_THAT(check(stack("deepspeed-hf", plan).whole_plan()), testing::IsEmpty());
  const auto together = check(stack("torchtitan", plan).whole_plan());
  ASSERT_EQ(together.size(), 1U);
  EXPECT_EQ(together.front().suggestion, "optimizer: {offload: cpu}");
  plan.optimizer_offload = Offload::cpu;
  EXPECT_THAT(check(stack("torchtitan", plan).whole_plan()), testing::IsEmpty());
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
  bench.framework.persistence_per_hidden.reset();
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
