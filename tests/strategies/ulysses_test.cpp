// Ulysses by its formula (DeepSpeed-Ulysses, arXiv 2309.14509 §3.2), as one GPU sends it per layer and micro-batch:
//   forward = backward = (P−1)/P · s·d·e·(a + 2·max(k, P) + a), s = B·S/P tokens, e = 2 bytes
// in words: queries, keys, values and then the output change from token to head sharding, all but the own 1/P leaving
// the GPU; with fewer key/value heads than ranks, K and V are repeated to P heads first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using testing::HasSubstr;
using namespace workload;

Plan ulysses(std::int64_t degree, std::int64_t sequence, std::int64_t micro_batch = 1) {
  Plan plan = lab::plain_plan(sequence);
  plan.mesh.set_size(MeshAxis::ulysses, degree);
  plan.micro_batch = micro_batch;
  return plan;
}

double forward_bytes(const OpGraph& graph) {
  return lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::ulysses});
}
double backward_bytes(const OpGraph& graph) {
  return lab::sent(graph, {.phase = Phase::backward, .purpose = Purpose::ulysses});
}

TEST(Ulysses, multi_head_attention_sends_four_hidden_states) {
  // llama-2-7b: a = k = 32 heads of 128. Two sequences of 65,536 on 8 GPUs: 16,384 tokens each.
  const OpGraph graph = lab::bench("llama-2-7b", ulysses(8, 65536, 2)).after({"ulysses"});
  const double expected = 7.0 / 8 * 16384 * 128 * 2 * (32 + 2 * 32 + 32);
  EXPECT_EQ(forward_bytes(graph), expected) << "four times the hidden state, 7/8 of it leaves";
  EXPECT_EQ(backward_bytes(graph), expected) << "the gradients of the same four";
}

TEST(Ulysses, grouped_heads_send_fewer_keys_and_values) {
  // llama-3.1-8b: a = 32, k = 8. P = 4 ≤ k: nothing is repeated.
  const OpGraph graph = lab::bench("llama-3.1-8b", ulysses(4, 65536)).after({"ulysses"});
  const double expected = 3.0 / 4 * 16384 * 128 * 2 * (32 + 2 * 8 + 32);
  EXPECT_EQ(forward_bytes(graph), expected);
  EXPECT_EQ(backward_bytes(graph), expected);
}

TEST(Ulysses, more_ranks_than_key_value_heads_repeat_them_before_sending) {
  // llama-3.1-8b on 16: 8 key/value heads travel as 16. falcon-7b (one key/value head) on 71: as 71.
  const OpGraph llama = lab::bench("llama-3.1-8b", ulysses(16, 65536)).after({"ulysses"});
  EXPECT_EQ(forward_bytes(llama), 15.0 / 16 * 4096 * 128 * 2 * (32 + 2 * 16 + 32));
  EXPECT_EQ(backward_bytes(llama), forward_bytes(llama));
  const OpGraph falcon = lab::bench("falcon-7b", ulysses(71, 71 * 1024)).after({"ulysses"});
  EXPECT_EQ(forward_bytes(falcon), 70.0 * (1024 * 64 * 2 * (71 + 2 * 71 + 71)) / 71);
}

TEST(Ulysses, volume_stays_when_sequence_and_ranks_grow_together) {
  // What stays is the volume of one link, payload/P·P: 4·N·h/P elements with N/P fixed. Of it (P−1)/P leaves.
  const auto per_link = [](std::int64_t degree) {
    const OpGraph graph = lab::bench("llama-2-7b", ulysses(degree, degree * 8192)).after({"ulysses"});
    const auto p = static_cast<double>(degree);
    return forward_bytes(graph) * p / (p - 1);
  };
  for (const std::int64_t degree : {2, 4, 8, 16, 32}) {
    EXPECT_EQ(per_link(degree), 4.0 * 8192 * 4096 * 2) << "P = " << degree;
  }
}

TEST(Ulysses, at_64_gpus_sends_over_ten_times_less_than_megatron_sequence_parallelism) {
  if (!lab::has("tensor")) {
    GTEST_SKIP() << "the other side of the comparison is not in the catalogue";
  }
  // gpt-neox-20b has 64 heads. Per layer Megatron moves 4·N·h, Ulysses 4·N·h/P: 64 times less (arXiv 2309.14509 §3.2),
  // if MLP follows attention, as in the paper's models; beside it, both outputs are scattered at once.
  Plan megatron = lab::plain_plan(65536);
  megatron.mesh.set_size(MeshAxis::tensor, 64);
  lab::Bench bench = lab::bench("gpt-neox-20b", megatron);
  bench.model.block_order = BlockOrder::sequential;
  const OpGraph theirs = bench.after({"tensor"});
  const OpGraph ours = lab::bench("gpt-neox-20b", ulysses(64, 65536)).after({"ulysses"});
  const double forward = lab::sent(theirs, {.phase = Phase::forward, .purpose = Purpose::tensor_parallel});
  const double backward = lab::sent(theirs, {.phase = Phase::backward, .purpose = Purpose::tensor_parallel});
  EXPECT_EQ(forward / forward_bytes(ours), 64);
  EXPECT_GT((forward + backward) / (forward_bytes(ours) + backward_bytes(ours)), 10);
}

TEST(Ulysses, degrees_that_do_not_fit_the_heads_are_told_what_would) {
  const lab::Bench bench = lab::bench("qwen2.5-7b", ulysses(8, 65536));
  const auto reasons = lab::pass("ulysses").check(bench.context());
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_THAT(reasons[0].reason, HasSubstr("28 heads do not divide by ulysses 8"));
  EXPECT_THAT(reasons[0].suggestion, HasSubstr("ulysses 4"));
}

TEST(Ulysses, a_forgotten_all_to_all_is_found_before_anything_runs) {
  OpGraph graph = lab::bench("llama-2-7b", ulysses(8, 65536)).after({"ulysses"});
  BlockTemplate& block = graph.templates[1];
  Body& body = block.body(Phase::forward);
  // Take out the exchange of the queries and let attention read them as they were.
  const auto exchange =
      std::find_if(body.ops.begin(), body.ops.end(), [](const Op& op) { return op.name == "all_to_all_rope_q"; });
  ASSERT_NE(exchange, body.ops.end());
  const TensorId before = exchange->reads[0];
  const TensorId after = exchange->writes[0];
  body.ops.erase(exchange);
  for (Op& op : body.ops) {
    std::replace(op.reads.begin(), op.reads.end(), after, before);
  }
  const auto findings = verify(graph);
  EXPECT_THAT(findings, testing::Contains(AllOf(HasSubstr("forward.unpack_rope_q"), HasSubstr("tokens"))))
      << "packed queries are split by tokens, what attention reads by heads";
}

TEST(Ulysses, attention_on_token_shards_is_found) {
  OpGraph graph = lab::bench("llama-2-7b", ulysses(8, 65536)).logical();
  graph.mesh.set_size(MeshAxis::ulysses, 8);
  for (Tensor& tensor : graph.templates[1].tensors) {
    if (Extent* tokens = tensor.find(Dim::tokens)) {
      tokens->split.push_back(MeshAxis::ulysses);
    }
  }
  EXPECT_THAT(verify_shapes(graph), testing::Contains(AllOf(HasSubstr("forward.attention: sees tokens"),
                                                            HasSubstr("an all-to-all or a gather over ulysses"))));
}

}  // namespace
}  // namespace ulysim::strategies
