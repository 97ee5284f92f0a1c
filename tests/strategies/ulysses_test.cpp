// Ulysses by its formula (DeepSpeed-Ulysses, arXiv 2309.14509 §3.2), as one GPU sends it per layer and micro-batch:
//   forward = backward = (P−1)/P · s·d·e·(a + 2·max(k, P) + a), s = B·S/P tokens, e = 2 bytes
// in words: queries, keys, values and then the output change from token to head sharding, all but the own 1/P leaving
// the GPU; with fewer key/value heads than ranks, K and V are repeated to P heads first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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

/// Bytes of head-sharded scratch that the backward kernel takes per element of the queries.
std::int64_t workspace_bytes(std::string_view model, std::int64_t degree) {
  const OpGraph graph = lab::bench(model, ulysses(degree, degree * 8192)).after({"ulysses"});
  for (const Tensor& tensor : lab::layer_of(graph).tensors) {
    if (tensor.kind == MemoryKind::attention_workspace) {
      return tensor.element_bytes;
    }
  }
  return 0;
}

TEST(Ulysses, heads_that_are_grouped_no_longer_take_no_expanded_gradients) {
  // llama-3.1-8b, 32 heads over 8: a rank of 16 holds two query heads with one of keys, a rank of 32 one with one.
  // FlashAttention-2: 4 bytes for dQ in fp32, 4 more for dK and dV where several query heads share them.
  EXPECT_EQ(workspace_bytes("llama-3.1-8b", 16), 8);
  EXPECT_EQ(workspace_bytes("llama-3.1-8b", 32), 4);
  EXPECT_EQ(workspace_bytes("llama-2-7b", 8), 4) << "never grouped";
}

std::int64_t copies(const OpGraph& graph, Phase phase, std::string_view of) {
  const auto& ops = lab::layer_of(graph).body(phase).ops;
  return std::count_if(ops.begin(), ops.end(), [of](const Op& op) {
    return op.name == "pack_" + std::string(of) || op.name == "unpack_" + std::string(of);
  });
}

TEST(Ulysses, the_output_is_copied_on_one_side_where_the_stack_saves_the_other) {
  // DeepSpeed sends the attention output as it lies and permutes what it receives; its gradient the other way round.
  for (const std::int64_t sides : {1, 2}) {
    lab::Bench bench = lab::bench("llama-3.1-8b", ulysses(8, 65536));
    bench.framework.output_exchange_copies.value = sides;
    const OpGraph graph = bench.after({"ulysses"});
    EXPECT_EQ(copies(graph, Phase::forward, "o_heads"), sides);
    EXPECT_EQ(copies(graph, Phase::backward, "d_o"), sides);
    EXPECT_EQ(copies(graph, Phase::forward, "rope_q"), 2) << "queries are permuted on both";
    EXPECT_THAT(verify(graph), testing::IsEmpty());
    EXPECT_EQ(forward_bytes(graph), 7.0 / 8 * 8192 * 128 * 2 * (32 + 2 * 8 + 32)) << "what travels is the same";
  }
}

TEST(Ulysses, exchange_buffers_are_recorded_where_the_stack_does) {
  for (const std::int64_t records : {0, 1}) {
    lab::Bench bench = lab::bench("llama-3.1-8b", ulysses(8, 65536));
    bench.framework.records_exchange_buffers.value = records;
    const OpGraph graph = bench.after({"ulysses"});
    std::set<std::string> recorded;
    for (const Tensor& tensor : lab::layer_of(graph).tensors) {
      if (tensor.recorded) {
        recorded.insert(tensor.name);
      }
    }
    if (records == 0) {
      EXPECT_THAT(recorded, testing::IsEmpty());
    } else {
      EXPECT_THAT(recorded, testing::IsSupersetOf({"rope_q_send", "rope_q_received", "d_o_send", "d_o_heads"}));
      EXPECT_THAT(recorded, testing::Not(testing::Contains("rope_q_heads"))) << "what unpacking writes never travels";
    }
  }
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
