// Other optimizers than AdamW with fp32 states: bytes of states by their moments and types, transients by what is
// updated at once, and Muon: FLOPs of Newton–Schulz, volume of bringing matrices together, the same work whatever the
// shards.

#include "sim/strategies/optimizer_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

double states_of(const spec::Framework& framework, Optimizer optimizer, OptimizerStates states) {
  Plan plan = lab::plain_plan(8192);
  plan.optimizer = optimizer;
  plan.optimizer_states = states;
  return optimizer_bytes(framework, plan).states;
}

TEST(OptimizerBytes, follow_moments_and_their_type) {
  const spec::Framework deepspeed = lab::framework("deepspeed-hf");
  EXPECT_EQ(states_of(deepspeed, Optimizer::adamw, OptimizerStates::fp32), 12) << "master 4, moments 8";
  EXPECT_EQ(states_of(deepspeed, Optimizer::lion, OptimizerStates::fp32), 8) << "master 4, momentum 4";
  EXPECT_EQ(states_of(deepspeed, Optimizer::adamw, OptimizerStates::bf16), 6) << "master 2, moments 4";
  const spec::Framework fsdp = lab::framework("trl-fsdp2");
  EXPECT_EQ(states_of(fsdp, Optimizer::adamw, OptimizerStates::fp32), 8) << "no master";
  EXPECT_EQ(states_of(fsdp, Optimizer::adamw, OptimizerStates::bf16), 4);
  EXPECT_EQ(states_of(fsdp, Optimizer::adamw, OptimizerStates::eight_bit), 2);
  EXPECT_EQ(states_of(fsdp, Optimizer::sgd, OptimizerStates::bf16), 2);
  // Fused AdamW moves 28 B (p g m v read, p m v written) and clipping 12; all of it halves in bf16 but clipping, which
  // reads and writes gradients twice: 14 + … the gradient's type counts once.
  Plan plan = lab::plain_plan(8192);
  plan.optimizer_states = OptimizerStates::bf16;
  EXPECT_EQ(optimizer_bytes(fsdp, plan).traffic, 40 - 2 * (8 - 4) - 2 * (4 - 2) - (4 - 2));
}

TEST(OptimizerBytes, what_a_stack_does_not_have_is_refused_by_name) {
  lab::Bench bench = lab::bench("llama-3.1-8b", lab::plain_plan(8192));
  bench.plan.optimizer_states = OptimizerStates::bf16;
  auto reasons = reasons_against(bench.framework, bench.plan);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0].suggestion, "optimizer.offload: cpu") << "DeepSpeed has them with CPU Adam only";
  bench.plan.optimizer_offload = Offload::cpu;
  EXPECT_TRUE(reasons_against(bench.framework, bench.plan).empty());
  bench.plan.optimizer_states = OptimizerStates::eight_bit;
  EXPECT_THAT(reasons_against(bench.framework, bench.plan)[0].reason, testing::HasSubstr("optimizer.states: 8bit"));
  bench.plan.optimizer_states = OptimizerStates::fp32;
  bench.plan.optimizer = Optimizer::muon;
  EXPECT_EQ(reasons_against(bench.framework, bench.plan).size(), 1U) << "the momentum must be on the GPU";
}

TEST(OptimizerBytes, fp16_searches_gradients_for_infinities) {
  Plan plan = lab::plain_plan(8192);
  const spec::Framework megatron = lab::framework("megatron-core");
  const double bf16 = optimizer_bytes(megatron, plan).traffic;
  plan.dtype = Dtype::fp16;
  EXPECT_EQ(optimizer_bytes(megatron, plan).traffic, bf16 + 8) << "fp32 gradients read and written once more";
  EXPECT_TRUE(reasons_against(megatron, plan).empty());
  const auto none = reasons_against(lab::framework("torchtitan"), plan);
  ASSERT_EQ(none.size(), 1U);
  EXPECT_EQ(none[0].reason, "dtype: fp16: torchtitan does not scale the loss");
  plan.dtype = Dtype::fp32;
  EXPECT_THAT(reasons_against(megatron, plan)[0].reason, testing::HasSubstr("FlashAttention and cuDNN"));
}

TEST(OptimizerBytes, adafactor_factors_matrices_and_no_flat_shards) {
  Plan plan = lab::plain_plan(8192);
  plan.optimizer = Optimizer::adafactor;
  EXPECT_EQ(optimizer_bytes(lab::framework("trl-fsdp2"), plan).states, 0) << "rows and columns";
  const spec::Framework deepspeed = lab::framework("deepspeed-hf");
  EXPECT_EQ(optimizer_bytes(deepspeed, plan).states, 4 + 4) << "master and a whole second moment";
  EXPECT_TRUE(reasons_against(deepspeed, plan).empty());
  plan.optimizer_offload = Offload::cpu;
  EXPECT_EQ(reasons_against(deepspeed, plan).size(), 1U);
  plan.optimizer_offload = Offload::none;
  EXPECT_THAT(reasons_against(lab::framework("nemo"), plan)[0].reason, testing::HasSubstr("nemo has none"));
}

Plan muon(std::int64_t zero, std::int64_t data) {
  Plan plan = lab::plain_plan(8192);
  plan.optimizer = Optimizer::muon;
  plan.zero = zero;
  plan.mesh.set_size(MeshAxis::data, data);
  return plan;
}

OpGraph graph_of(const Plan& plan) {
  lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  OpGraph graph = build_training_step(
      bench.model, {.sequence_length = plan.sequence_length,
                    .batch = plan.mesh.size(MeshAxis::data),
                    .costs = {.optimizer_bytes = 12, .matrix_optimizer_bytes = 8, .matrix_optimizer_traffic = 20}});
  return parallelize(bench.whole_plan(), std::move(graph));
}

// Two layers of llama-3.1-8b: q and o 4096 × 4096, k and v 1024 × 4096, gate, up and down 4096 × 14336.
struct Matrices {
  double count, rows, columns;
};
constexpr std::array<Matrices, 3> kMatrices{{{4, 4096, 4096}, {4, 1024, 4096}, {6, 4096, 14336}}};

double newton_schulz_flops() {
  // Five steps of XXᵀ, A² and (bA + cA²)X: 2r²c + 2r³ + 2r²c each (kellerjordan.github.io/posts/muon).
  double sum = 0;
  for (const auto& [count, rows, columns] : kMatrices) {
    sum += count * 5 * (4 * rows * rows * columns + 2 * rows * rows * rows);
  }
  return sum;
}

double optimizer_flops(const OpGraph& graph) {
  const BlockTemplate& block = *std::find_if(graph.templates.begin(), graph.templates.end(),
                                             [](const BlockTemplate& b) { return b.kind == BlockKind::optimizer; });
  double sum = 0;
  for (Op op : block.body(Phase::update).ops) {
    if (std::holds_alternative<GemmWork>(op.work)) {
      op.loop = -1;  // all trips together
      sum += kernel::executed_flops(kernel_of(graph, block, block.body(Phase::update), op, {})).value();
    }
  }
  return sum;
}

TEST(Muon, orthogonalises_every_matrix_of_a_layer_and_nothing_else) {
  const OpGraph alone = graph_of(muon(0, 1));
  EXPECT_DOUBLE_EQ(optimizer_flops(alone), newton_schulz_flops());
  EXPECT_DOUBLE_EQ(executed_flops(alone).value() - model_flops(alone).value(),
                   newton_schulz_flops() + executed_flops(graph_of(lab::plain_plan(8192))).value() -
                       model_flops(graph_of(lab::plain_plan(8192))).value())
      << "executed, and no work of the model";
  // Two ranks share the matrices of sharded states: half the work each. Without ZeRO each does all of it.
  EXPECT_DOUBLE_EQ(optimizer_flops(graph_of(muon(3, 2))), newton_schulz_flops() / 2);
  EXPECT_DOUBLE_EQ(optimizer_flops(graph_of(muon(0, 2))), newton_schulz_flops());
}

TEST(Muon, brings_matrices_together_and_takes_them_apart) {
  for (const std::int64_t zero : {1, 2, 3}) {
    const OpGraph graph = graph_of(muon(zero, 2));
    double sent = 0;
    double elements = 0;
    for (const BlockTemplate& block : graph.templates) {
      for (const Op& op : block.body(Phase::update).ops) {
        const auto* work = std::get_if<CollectiveWork>(&op.work);
        if (work != nullptr && work->kind == CollectiveKind::all_to_all) {
          sent += lab::bytes_sent(graph, block, block.body(Phase::update), op);
        }
      }
    }
    for (const auto& [count, rows, columns] : kMatrices) {
      elements += count * rows * columns;
    }
    // A rank's half of each matrix in bf16, of which half goes; there and back.
    EXPECT_DOUBLE_EQ(sent, 2 * (elements / 2) * 2 / 2) << "ZeRO-" << zero;
  }
}

TEST(Muon, keeps_one_moment_of_matrices) {
  const OpGraph graph = graph_of(muon(0, 1));
  std::int64_t bytes = 0;
  for (const Tensor& tensor : graph.templates.back().tensors) {
    bytes += tensor.persistent ? local_bytes(tensor, graph.mesh).value() : 0;
  }
  std::int64_t elements = 0;
  for (const auto& [count, rows, columns] : kMatrices) {
    elements += static_cast<std::int64_t>(count * rows * columns);
  }
  EXPECT_EQ(bytes, 12 * count_parameters(lab::short_model("llama-3.1-8b", 2)).total - 4 * elements);
}

TEST(Transients, are_of_what_is_updated_at_once) {
  lab::Bench bench = lab::bench("llama-3.1-8b", lab::plain_plan(8192));
  bench.plan.zero = 3;
  bench.plan.mesh.set_size(MeshAxis::data, 8);
  const std::int64_t shard = (count_parameters(bench.model).total + 7) / 8;
  const auto transient = [&] {
    OpGraph graph = build_training_step(
        bench.model, {.sequence_length = 8192, .batch = 8, .costs = {.optimizer_transient_bytes = 6}});
    graph = parallelize(bench.whole_plan(), std::move(graph));
    std::int64_t bytes = 0;
    for (const TensorId id : graph.templates.back().body(Phase::update).ops.front().scratch) {
      bytes += local_bytes(graph.templates.back().tensor(id), graph.mesh).value();
    }
    return bytes;
  };
  EXPECT_EQ(transient(), 6 * shard);
  bench.framework.optimizer_chunk_elements.value = 1'000'000;
  EXPECT_EQ(transient(), 6'000'000) << "a sub-group at a time";
  bench.plan.optimizer_offload = Offload::cpu;
  EXPECT_EQ(transient(), 0) << "the host updates";
}

}  // namespace
}  // namespace ulysim::strategies
