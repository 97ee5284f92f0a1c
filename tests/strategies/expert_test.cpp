// Expert parallelism by its formula, as one GPU sends it per layer and micro-batch: tokens travel to the ranks of their
// experts and back, forward and backward alike,
//   each of four all-to-alls = (E−1)/E · tokens · top_k · h · e,   e = 2 bytes,
// and the experts' parameters belong to world/E ranks, the others to data × sequence.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using testing::HasSubstr;
using namespace workload;

Plan over_data(std::int64_t data, std::int64_t expert) {
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(MeshAxis::data, data);
  plan.mesh.set_size(MeshAxis::expert, expert);
  return plan;
}

double expert_bytes(const OpGraph& graph, Phase phase, bool recomputed = false) {
  return lab::sent(graph, {.phase = phase, .purpose = Purpose::expert, .recomputed = recomputed});
}

const Tensor& tensor(const OpGraph& graph, std::string_view name) {
  for (const Tensor& each : lab::layer_of(graph).tensors) {
    if (each.name == name) {
      return each;
    }
  }
  throw std::runtime_error("no tensor " + std::string(name));
}

kernel::Gemm product(const OpGraph& graph, std::string_view name) {
  const BlockTemplate& layer = lab::layer_of(graph);
  for (const Body& body : layer.bodies) {
    for (const Op& op : body.ops) {
      if (op.name == name) {
        return std::get<kernel::Gemm>(kernel_of(graph, layer, body, op, {}));
      }
    }
  }
  throw std::runtime_error("no op " + std::string(name));
}

TEST(Expert, tokens_go_to_their_experts_and_back_twice) {
  // mixtral-8x7b: 2 of 8 experts, hidden 4096. Each of 8 replicas has 8192 tokens.
  for (const std::int64_t expert : {2, 4, 8}) {
    const OpGraph graph = lab::bench("mixtral-8x7b", over_data(8, expert)).after({"expert", "data"});
    const auto e = static_cast<double>(expert);
    const double one_way = 8192.0 * 2 * 4096 * 2 * (e - 1) / e;
    EXPECT_EQ(expert_bytes(graph, Phase::forward), 2 * one_way) << "expert " << expert;
    EXPECT_EQ(expert_bytes(graph, Phase::backward), 2 * one_way) << "expert " << expert;
  }
}

TEST(Expert, lives_across_data_and_sequence_ranks) {
  // qwen3-30b-a3b: 8 of 128 experts, hidden 2048. Ulysses 4 × ring 2 × data 2, 65,536 tokens: 8192 on each rank; a
  // group of 8 is exactly one sequence.
  Plan plan = lab::plain_plan(65536);
  plan.mesh.set_size(MeshAxis::ulysses, 4);
  plan.mesh.set_size(MeshAxis::ring, 2);
  plan.mesh.set_size(MeshAxis::data, 2);
  plan.mesh.set_size(MeshAxis::expert, 8);
  const OpGraph graph = lab::bench("qwen3-30b-a3b", plan).after({"data", "ulysses", "ring", "expert"});
  EXPECT_EQ(expert_bytes(graph, Phase::forward), 2 * (8192.0 * 8 * 2048 * 2 * 7 / 8));
  EXPECT_EQ(expert_bytes(graph, Phase::backward), expert_bytes(graph, Phase::forward));
}

TEST(Expert, recompute_sends_forward_again) {
  Plan plan = over_data(8, 8);
  plan.recompute = Recompute::full;
  lab::Bench bench = lab::bench("mixtral-8x7b", plan);
  bench.framework.recompute_early_stop.value = 0;
  const OpGraph graph = bench.after({"expert", "data", "recompute"});
  EXPECT_EQ(expert_bytes(graph, Phase::backward, true), expert_bytes(graph, Phase::forward));
}

TEST(Expert, a_rank_multiplies_the_slots_of_its_experts) {
  // 16 replicas of 8192 tokens, top 2 of 8 experts: 32,768 rows an expert. Over 4: two experts a rank, whose rows lie
  // on the 16/4 groups: 8192 each.
  const OpGraph graph = lab::bench("mixtral-8x7b", over_data(16, 4)).after({"expert", "data"});
  const kernel::Gemm up = product(graph, "expert_up_proj");
  EXPECT_EQ(up.batch, 2);
  EXPECT_EQ(up.m, 8192);
  EXPECT_EQ(up.n, 14336);
  EXPECT_EQ(up.k, 4096);
  const kernel::Gemm gradient = product(graph, "expert_up_wgrad");
  EXPECT_EQ(gradient.batch, 2);
  EXPECT_EQ(gradient.k, 8192);
  // Without expert parallelism each replica multiplies for all eight.
  const OpGraph alone = lab::bench("mixtral-8x7b", over_data(16, 1)).after({"expert", "data"});
  EXPECT_EQ(product(alone, "expert_up_proj").batch, 8);
  EXPECT_EQ(product(alone, "expert_up_proj").m, 2048);
}

TEST(Expert, tensor_parallelism_cuts_each_expert) {
  Plan plan = over_data(8, 8);
  plan.mesh.set_size(MeshAxis::tensor, 2);
  const OpGraph graph = lab::bench("mixtral-8x7b", plan).after({"expert", "data", "tensor"});
  // 16,384 rows an expert on 8 replicas, one expert to a group of two tensor ranks, which gather the rows.
  EXPECT_EQ(product(graph, "expert_up_proj").m, 16384);
  EXPECT_EQ(product(graph, "expert_up_proj").n, 7168);
  EXPECT_EQ(product(graph, "expert_down_proj").k, 7168);
  // Each tensor rank sends its half of the tokens.
  EXPECT_EQ(expert_bytes(graph, Phase::forward), 2 * (4096.0 * 2 * 4096 * 2 * 7 / 8));
}

TEST(Expert, parameters_of_experts_belong_to_the_ranks_with_the_same_experts) {
  // mixtral-8x7b: up 4096·14336 an expert, q 4096². 16 replicas, expert 4: two experts a rank, shared by 16/4 ranks.
  constexpr std::int64_t kMatrix = 4096 * 14336;
  Plan plan = over_data(16, 4);
  const OpGraph placed = lab::bench("mixtral-8x7b", plan).after({"expert", "data"});
  EXPECT_EQ(local_elements(tensor(placed, "w_expert_up"), placed.mesh), 2 * kMatrix);
  EXPECT_EQ(local_elements(tensor(placed, "w_q"), placed.mesh), 4096 * 4096);
  plan.zero = 3;
  const OpGraph graph = lab::bench("mixtral-8x7b", plan).after({"expert", "data", "zero"});
  EXPECT_EQ(local_elements(tensor(graph, "w_expert_up"), graph.mesh), 2 * kMatrix / 4);
  EXPECT_EQ(local_elements(tensor(graph, "sum_d_w_expert_up"), graph.mesh), 2 * kMatrix / 4);
  EXPECT_EQ(local_elements(tensor(graph, "w_q"), graph.mesh), 4096 * 4096 / 16);
  // Gathered: two experts of three matrices among four ranks, the rest among sixteen (router: 4096·8, under the
  // threshold of 1e5 elements, is whole everywhere).
  const double others = 2.0 * (2 * 4096 * 4096 + 2 * 4096 * 1024);
  const double gathered = 3.0 / 4 * 2 * 2 * 3 * kMatrix + 15.0 / 16 * others;
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::parameters}), gathered);
}

TEST(Expert, optimizer_states_are_those_of_the_rank) {
  const lab::Bench bench = lab::bench("mixtral-8x7b", over_data(16, 4));
  const std::int64_t routed = 2 * 8 * 3 * std::int64_t{4096} * 14336;  // two layers
  const std::int64_t rest = count_parameters(bench.model).total - routed;
  const auto states = [](const OpGraph& graph) {
    std::int64_t elements = 0;
    const auto optimizer = std::find_if(graph.templates.begin(), graph.templates.end(),
                                        [](const BlockTemplate& block) { return block.kind == BlockKind::optimizer; });
    for (const Tensor& each : optimizer->tensors) {
      elements += each.kind == MemoryKind::optimizer_states ? local_elements(each, graph.mesh) : 0;
    }
    return elements;
  };
  EXPECT_EQ(states(bench.after({"expert", "data"})), rest + routed / 4);
  lab::Bench sharded = bench;
  sharded.plan.zero = 1;
  EXPECT_EQ(states(sharded.after({"expert", "data", "zero"})), rest / 16 + routed / 16);
}

TEST(Expert, experts_that_no_other_rank_has_are_neither_gathered_nor_reduced) {
  Plan plan = over_data(8, 8);
  plan.zero = 3;
  const OpGraph graph = lab::bench("mixtral-8x7b", plan).after({"expert", "data", "zero"});
  const double others = 2.0 * (2 * 4096 * 4096 + 2 * 4096 * 1024);
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::parameters}), 7.0 / 8 * others);
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::backward, .purpose = Purpose::gradients}),
            7.0 / 8 * (others + 2.0 * (4096 * 8 + 2 * 4096)))
      << "router and norms too";
}

TEST(Expert, imbalance_is_more_work_and_bytes_for_the_busiest_and_no_more_for_the_model) {
  Plan plan = over_data(8, 8);
  const OpGraph even = lab::bench("mixtral-8x7b", plan).after({"expert", "data"});
  plan.expert_imbalance = 1.5;
  const OpGraph uneven = lab::bench("mixtral-8x7b", plan).after({"expert", "data"});
  EXPECT_EQ(2 * product(uneven, "expert_up_proj").m, 3 * product(even, "expert_up_proj").m);
  EXPECT_EQ(expert_bytes(uneven, Phase::forward), 1.5 * expert_bytes(even, Phase::forward));
  EXPECT_DOUBLE_EQ(model_flops(uneven).value(), model_flops(even).value());
}

TEST(Expert, latent_attention_sends_queries_and_keys_by_their_width_and_values_by_theirs) {
  // deepseek-v3 over Ulysses 8: 128 heads; Q and K of 192, V and O of 128.
  Plan plan = lab::plain_plan(65536);
  plan.mesh.set_size(MeshAxis::ulysses, 8);
  const OpGraph graph = lab::bench("deepseek-v3", plan, 1).after({"ulysses"});
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::ulysses}),
            7.0 / 8 * 8192 * 2 * 128 * (2 * 192 + 2 * 128));
}

TEST(Expert, degrees_that_do_not_fit_are_told_what_would) {
  const auto reasons = [](const char* model, const Plan& plan) {
    return lab::pass("expert").check(lab::bench(model, plan).context());
  };
  const auto three = reasons("mixtral-8x7b", over_data(12, 3));
  ASSERT_EQ(three.size(), 1U);
  EXPECT_THAT(three[0].reason, HasSubstr("8 experts do not divide by expert 3"));
  EXPECT_EQ(three[0].suggestion, "expert 2");
  const auto eight = reasons("mixtral-8x7b", over_data(12, 8));
  ASSERT_EQ(eight.size(), 1U);
  EXPECT_THAT(eight[0].reason, HasSubstr("expert 8 does not divide the 12 ranks of data × sequence"));
  EXPECT_EQ(eight[0].suggestion, "expert 4");
  Plan heavy = over_data(8, 4);
  heavy.expert_imbalance = 5;
  const auto too_much = reasons("mixtral-8x7b", heavy);
  ASSERT_EQ(too_much.size(), 1U);
  EXPECT_THAT(too_much[0].reason, HasSubstr("expert_imbalance 5: one of 4 ranks"));
  const auto dense = reasons("llama-3.1-8b", over_data(8, 2));
  ASSERT_EQ(dense.size(), 1U);
  EXPECT_THAT(dense[0].reason, HasSubstr("has no experts"));
}

TEST(Expert, a_forgotten_dispatch_is_found_before_anything_runs) {
  OpGraph graph = lab::bench("mixtral-8x7b", over_data(8, 8)).after({"expert", "data"});
  BlockTemplate& block = graph.templates[1];
  Body& body = block.body(Phase::forward);
  const auto dispatch =
      std::find_if(body.ops.begin(), body.ops.end(), [](const Op& op) { return op.name.starts_with("dispatch_"); });
  ASSERT_NE(dispatch, body.ops.end());
  const TensorId home = dispatch->reads[0];
  const TensorId away = dispatch->writes[0];
  body.ops.erase(dispatch);
  for (Op& op : body.ops) {
    std::replace(op.reads.begin(), op.reads.end(), away, home);
  }
  EXPECT_THAT(verify_shapes(graph), testing::Contains(AllOf(HasSubstr("expert_up_proj"), HasSubstr("experts"))));
}

TEST(Expert, tokens_of_other_ranks_are_not_taken_for_its_own) {
  OpGraph graph = lab::bench("mixtral-8x7b", over_data(8, 8)).after({"expert", "data"});
  BlockTemplate& block = graph.templates[1];
  Body& body = block.body(Phase::forward);
  const auto combine =
      std::find_if(body.ops.begin(), body.ops.end(), [](const Op& op) { return op.name.starts_with("combine_"); });
  ASSERT_NE(combine, body.ops.end());
  const TensorId away = combine->reads[0];
  const TensorId home = combine->writes[0];
  body.ops.erase(combine);
  for (Op& op : body.ops) {
    std::replace(op.reads.begin(), op.reads.end(), home, away);
  }
  EXPECT_THAT(verify_shapes(graph), testing::Contains(AllOf(HasSubstr("unpermute"), HasSubstr("holds other tokens"))));
}

}  // namespace
}  // namespace ulysim::strategies
