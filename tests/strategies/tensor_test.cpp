// Megatron tensor parallelism with sequence parallelism (arXiv 2205.05198 §4.2.2), collectives per layer:
//   forward  2 all-gathers (input of QKV and of the MLP) and 2 reduce-scatters (their outputs)
//   backward 2 all-gathers of gradients, 2 of the kept inputs again (for the weight gradients), 2 reduce-scatters
// each (T−1)/T · B·S/(P·R)·h·e bytes. Full recompute repeats the forward ones: 14 in all.
// Norm weights are whole on every rank and have seen 1/T of the tokens: their gradients are all-reduced, counted as
// gradients and not here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using testing::HasSubstr;
using namespace workload;

Plan tensor(std::int64_t degree, std::int64_t sequence) {
  Plan plan = lab::plain_plan(sequence);
  plan.mesh.set_size(MeshAxis::tensor, degree);
  return plan;
}
constexpr lab::Asked kForward{.phase = Phase::forward, .purpose = Purpose::tensor_parallel};
constexpr lab::Asked kBackward{.phase = Phase::backward, .purpose = Purpose::tensor_parallel};

TEST(Tensor, a_layer_has_four_collectives_forward_and_six_backward) {
  for (const char* model : {"llama-3.1-8b", "llama-2-7b", "gpt2", "gemma-2-9b"}) {
    const OpGraph graph = lab::bench(model, tensor(4, 8192)).after({"tensor"});
    const BlockTemplate& layer = lab::layer_of(graph);
    EXPECT_EQ(lab::count(layer, kForward, CollectiveKind::all_gather), 2) << model;
    EXPECT_EQ(lab::count(layer, kForward, CollectiveKind::reduce_scatter), 2) << model;
    EXPECT_EQ(lab::count(layer, kBackward, CollectiveKind::all_gather), 4) << model;
    EXPECT_EQ(lab::count(layer, kBackward, CollectiveKind::reduce_scatter), 2) << model;
  }
}

TEST(Tensor, each_collective_moves_the_hidden_state_of_all_tokens) {
  Plan plan = tensor(4, 8192);
  plan.micro_batch = 2;
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"tensor"});
  const double one = 3.0 / 4 * 2 * 8192 * 4096 * 2;
  EXPECT_EQ(lab::sent(graph, kForward), 4 * one);
  EXPECT_EQ(lab::sent(graph, kBackward), 6 * one);
}

TEST(Tensor, beside_ulysses_and_ring_each_moves_its_part_of_the_tokens) {
  if (!lab::has("ulysses") || !lab::has("ring")) {
    GTEST_SKIP() << "a part of the combination is not in the catalogue";
  }
  Plan plan = tensor(2, 8192);
  plan.mesh.set_size(MeshAxis::ulysses, 2);
  plan.mesh.set_size(MeshAxis::ring, 2);
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"tensor", "ulysses", "ring"});
  EXPECT_EQ(lab::sent(graph, kForward), 4 * (1.0 / 2 * (8192 / 4) * 4096 * 2));
  // Ulysses on a tensor rank's heads: 16 and 4 of them, its tokens S/4.
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::ulysses}),
            1.0 / 2 * 2048 * 128 * 2 * (16 + 2 * 4 + 16));
  // The ring likewise: one send of 2·s·k/T·d·e.
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::ring}), 2.0 * 2048 * 4 * 128 * 2);
}

std::vector<std::string> names_around(const Body& body, const std::string& first, const std::string& last) {
  std::vector<std::string> names;
  for (const Op& op : body.ops) {
    if (op.name == first || !names.empty()) {
      names.push_back(op.name);
    }
    if (op.name == last) {
      break;
    }
  }
  return names;
}

TEST(Tensor, backward_gathers_beside_input_gradients_and_scatters_beside_weight_gradients) {
  const OpGraph graph = lab::bench("llama-3.1-8b", tensor(4, 8192)).after({"tensor"});
  EXPECT_THAT(names_around(lab::layer_of(graph).body(Phase::backward), "gather_normed1", "up_wgrad"),
              testing::ElementsAre("gather_normed1", "gate_dgrad", "up_dgrad", "scatter_d_normed1_gate", "gate_wgrad",
                                   "up_wgrad"));
  EXPECT_THAT(names_around(lab::layer_of(graph).body(Phase::backward), "gather_normed", "v_wgrad"),
              testing::ElementsAre("gather_normed", "q_dgrad", "k_dgrad", "v_dgrad", "scatter_d_normed_q", "q_wgrad",
                                   "k_wgrad", "v_wgrad"));
}

TEST(Tensor, the_input_gradients_of_fused_products_are_one_tensor) {
  // Q, K and V are one product in Megatron: one B·S·h gradient of its input, not three and their sum.
  const OpGraph graph = lab::bench("llama-3.1-8b", tensor(4, 8192)).after({"tensor"});
  const BlockTemplate& layer = lab::layer_of(graph);
  std::set<std::size_t> written;
  for (const Op& op : layer.body(Phase::backward).ops) {
    if (op.name == "q_dgrad" || op.name == "k_dgrad" || op.name == "v_dgrad") {
      written.insert(op.writes[0].index());
    }
  }
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(local_bytes(layer.tensors[*written.begin()], graph.mesh).value(), 8192LL * 4096 * 2);
}

TEST(Tensor, norm_weights_are_reduced_over_its_ranks) {
  const OpGraph graph = lab::bench("llama-3.1-8b", tensor(4, 8192)).after({"tensor"});
  // Two norms of 4096 in bf16.
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::backward, .purpose = Purpose::gradients}), 2.0 * 3 / 4 * 2 * 4096 * 2);
}

TEST(Tensor, logits_are_split_by_vocabulary) {
  const OpGraph graph = lab::bench("llama-3.1-8b", tensor(4, 8192)).after({"tensor"});
  const BlockTemplate& head = graph.templates[graph.templates.size() - 2];
  for (const Tensor& each : head.tensors) {
    if (each.name == "logits") {
      EXPECT_EQ(local_bytes(each, graph.mesh).value(), 8192LL * 128256 / 4 * 2);
    }
  }
}

TEST(Tensor, fewer_key_value_heads_than_ranks_are_kept_by_each_rank) {
  const OpGraph graph = lab::bench("llama-3.1-8b", tensor(16, 8192)).after({"tensor"});
  const BlockTemplate& layer = lab::layer_of(graph);
  for (const Tensor& each : layer.tensors) {
    if (each.name == "w_k") {
      EXPECT_EQ(local_elements(each, graph.mesh), 4096 * 128) << "one head";
      EXPECT_EQ(global_elements(each), 4096 * 8 * 128) << "of eight";
    }
  }
}

TEST(Tensor, degrees_that_do_not_fit_are_told_what_would) {
  const lab::Bench bench = lab::bench("qwen2.5-7b", tensor(8, 65536));
  const auto reasons = lab::pass("tensor").check(bench.context());
  ASSERT_FALSE(reasons.empty());
  EXPECT_THAT(reasons[0].reason, HasSubstr("28 heads do not divide by tensor 8"));
  EXPECT_THAT(reasons[0].suggestion, HasSubstr("tensor 4 with data 2"));
}

TEST(Tensor, a_partial_sum_that_is_never_reduced_is_found) {
  OpGraph graph = lab::bench("llama-3.1-8b", tensor(4, 8192)).after({"tensor"});
  BlockTemplate& block = graph.templates[1];
  Body& body = block.body(Phase::forward);
  const auto scatter =
      std::find_if(body.ops.begin(), body.ops.end(), [](const Op& op) { return op.name == "scatter_attention_out"; });
  ASSERT_NE(scatter, body.ops.end());
  const Op gone = *scatter;
  body.ops.erase(scatter);
  for (Op& op : body.ops) {
    std::replace(op.reads.begin(), op.reads.end(), gone.writes[0], gone.reads[0]);
  }
  EXPECT_THAT(verify_shapes(graph),
              testing::Contains(AllOf(HasSubstr("forward.residual"), HasSubstr("partial"), HasSubstr("{tensor}"))));
}

TEST(Tensor, backward_collectives_stand_alone_where_the_stack_overlaps_none) {
  lab::Bench bench = lab::bench("llama-3.1-8b", tensor(4, 8192));
  bench.framework.overlap_tensor_backward.value = 0;
  const OpGraph graph = bench.after({"tensor"});
  EXPECT_THAT(names_around(lab::layer_of(graph).body(Phase::backward), "gate_dgrad", "norm1_backward"),
              testing::ElementsAre("gate_dgrad", "up_dgrad", "gather_normed1", "gate_wgrad", "up_wgrad",
                                   "accumulate_mlp", "scatter_d_normed1_gate", "norm1_backward"))
      << "each right before what waits for it";
  EXPECT_EQ(lab::sent(graph, kBackward), 6 * (3.0 / 4 * 8192 * 4096 * 2)) << "the same bytes";
}

TEST(Tensor, what_products_keep_gathered_is_not_gathered_again) {
  // PyTorch's DTensor hands F.linear the whole input, which it saves: of the 6 collectives of backward the 2 that
  // gather kept inputs again are gone, and the layer keeps two inputs of 8192 × 4096 bf16 whole.
  lab::Bench bench = lab::bench("llama-3.1-8b", tensor(4, 8192));
  bench.framework.tensor_keeps_gathered.value = 1;
  const OpGraph graph = bench.after({"tensor"});
  EXPECT_EQ(lab::sent(graph, kForward), 4 * (3.0 / 4 * 8192 * 4096 * 2));
  EXPECT_EQ(lab::sent(graph, kBackward), 4 * (3.0 / 4 * 8192 * 4096 * 2));
  double whole = 0;
  for (const Tensor& tensor : lab::layer_of(graph).tensors) {
    whole += tensor.kind == MemoryKind::activations && tensor.name.ends_with("_gathered")
                 ? static_cast<double>(local_bytes(tensor, graph.mesh).value())
                 : 0;
  }
  EXPECT_EQ(whole, 2.0 * 8192 * 4096 * 2);
  EXPECT_TRUE(verify_shapes(graph).empty());
}

TEST(Tensor, the_loss_over_a_cut_vocabulary_reduces_three_numbers_a_token) {
  // Largest logit, label's logit, sum of exponentials: 3 all-reduces of 8192 fp32 numbers, 2·(T−1)/T of each sent.
  const OpGraph graph = lab::bench("llama-3.1-8b", tensor(4, 8192)).after({"tensor"});
  const auto head = std::find_if(graph.templates.begin(), graph.templates.end(),
                                 [](const BlockTemplate& block) { return block.kind == BlockKind::head; });
  double sent = 0;
  for (const Op& op : head->body(Phase::forward).ops) {
    const auto* work = std::get_if<CollectiveWork>(&op.work);
    sent += work != nullptr && work->kind == CollectiveKind::all_reduce
                ? lab::bytes_sent(graph, *head, head->body(Phase::forward), op)
                : 0;
  }
  EXPECT_EQ(sent, 3 * 2 * (3.0 / 4) * 8192 * 4);
}

TEST(Tensor, branches_side_by_side_are_scattered_at_once) {
  // GPT-NeoX norms the layer's input twice: two gathers, and one scatter of attention and MLP together. Falcon-7B norms
  // it once: one gather serves both. Backward: the incoming gradient, and each kept input once more; one scatter for
  // each norm.
  const OpGraph neox = lab::bench("gpt-neox-20b", tensor(4, 8192)).after({"tensor"});
  EXPECT_EQ(lab::count(lab::layer_of(neox), kForward, CollectiveKind::all_gather), 2);
  EXPECT_EQ(lab::count(lab::layer_of(neox), kForward, CollectiveKind::reduce_scatter), 1);
  EXPECT_EQ(lab::count(lab::layer_of(neox), kBackward, CollectiveKind::all_gather), 3);
  EXPECT_EQ(lab::count(lab::layer_of(neox), kBackward, CollectiveKind::reduce_scatter), 2);
  const OpGraph falcon = lab::bench("falcon-7b", tensor(71, 71 * 128)).after({"tensor"});
  EXPECT_EQ(lab::count(lab::layer_of(falcon), kForward, CollectiveKind::all_gather), 1);
  EXPECT_EQ(lab::count(lab::layer_of(falcon), kForward, CollectiveKind::reduce_scatter), 1);
  EXPECT_EQ(lab::count(lab::layer_of(falcon), kBackward, CollectiveKind::all_gather), 2);
  EXPECT_EQ(lab::count(lab::layer_of(falcon), kBackward, CollectiveKind::reduce_scatter), 1);
}

TEST(Tensor, forward_products_run_beside_their_collectives_where_the_stack_pipelines_them) {
  lab::Bench bench = lab::bench("llama-3.1-8b", tensor(4, 8192));
  bench.framework.overlap_tensor_forward.value = 1;
  const OpGraph graph = bench.after({"tensor"});
  EXPECT_EQ(lab::sent(graph, kForward), 4 * (3.0 / 4 * 8192 * 4096 * 2)) << "the same bytes";
  EXPECT_NEAR(executed_flops(graph) / executed_flops(bench.logical()), 1, 1e-12);
  EXPECT_NEAR(model_flops(graph) / model_flops(bench.logical()), 1, 1e-12);
  const BlockTemplate& layer = lab::layer_of(graph);
  EXPECT_THAT(names_around(layer.body(Phase::forward), "gather_normed_first", "v_proj_last"),
              testing::ElementsAre("gather_normed_first", "gather_normed_rest", "q_proj_beside", "k_proj_beside",
                                   "v_proj_beside", "q_proj_last", "k_proj_last", "v_proj_last"));
  // Of four steps one is gathered before the products begin, and three beside as many of them.
  for (const Op& op : layer.body(Phase::forward).ops) {
    if (op.name == "gather_normed_rest" || op.name == "q_proj_beside") {
      EXPECT_EQ(runs_of(layer.body(Phase::forward), op), 3) << op.name;
    }
  }
}

TEST(Tensor, inputs_that_are_quantised_travel_in_one_byte) {
  // llama-3.1-8b, 4 ranks, s·h elements each time. Forward gathers two inputs and scatters two sums; backward gathers
  // two gradients and both inputs again, and scatters two sums. Sums are bf16.
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(MeshAxis::tensor, 4);
  plan.gemm_precision = kernel::Precision::fp8;
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"tensor"});
  constexpr double kOne = 3.0 / 4 * 8192 * 4096;
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::tensor_parallel}), kOne * (2 * 1 + 2 * 2));
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::backward, .purpose = Purpose::tensor_parallel}), kOne * (4 * 1 + 2 * 2));
}

}  // namespace
}  // namespace ulysim::strategies
