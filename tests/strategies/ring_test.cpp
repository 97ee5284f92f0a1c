// Ring Attention by its formula, bytes that one GPU sends per layer and micro-batch, s = S/R tokens, e = 2:
//   p2p        forward (R−1)·2·s·k·d·e; backward the keys and values again, and R sends of 2·s·k·d·4: dK and dV in
//              fp32 travel one place further than the keys, home (zhuzilin/ring-flash-attention, feifeibear/
//              long-context-attention; TransformerEngine sends R−1 in bf16)
//   all-gather forward (R−1)·2·s·k·d·e; backward gathers again and reduce-scatters dK, dV in bf16: twice that
// Key/value heads are not repeated: k, not a.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using namespace workload;

Plan ring(std::int64_t degree, std::int64_t sequence, RingExchange exchange = RingExchange::p2p) {
  Plan plan = lab::plain_plan(sequence);
  plan.mesh.set_size(MeshAxis::ring, degree);
  plan.ring_exchange = exchange;
  return plan;
}
double forward_bytes(const OpGraph& graph) {
  return lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::ring});
}
double backward_bytes(const OpGraph& graph) {
  return lab::sent(graph, {.phase = Phase::backward, .purpose = Purpose::ring});
}

TEST(Ring, sends_keys_and_values_round_and_their_gradients_home) {
  // llama-3.1-8b: 8 key/value heads of 128; 65,536 tokens on 4 GPUs: 16,384 each.
  const OpGraph graph = lab::bench("llama-3.1-8b", ring(4, 65536)).after({"ring"});
  const double once = 2.0 * 16384 * 8 * 128;
  EXPECT_EQ(forward_bytes(graph), 3 * once * 2) << "R−1 sends of K and V";
  EXPECT_EQ(backward_bytes(graph), 3 * once * 2 + 4 * once * 4) << "R−1 of K and V, R of dK and dV in fp32";
  EXPECT_EQ(
      lab::count(lab::layer_of(graph), {.phase = Phase::backward, .purpose = Purpose::ring}, CollectiveKind::send_recv),
      7);
}

TEST(Ring, multi_head_attention_sends_all_heads) {
  const OpGraph graph = lab::bench("llama-2-7b", ring(8, 65536)).after({"ring"});
  EXPECT_EQ(forward_bytes(graph), 7 * 2.0 * 8192 * 32 * 128 * 2);
}

TEST(Ring, all_gather_exchange_sends_as_much_forward_and_twice_backward) {
  const OpGraph graph = lab::bench("llama-3.1-8b", ring(4, 65536, RingExchange::all_gather)).after({"ring"});
  const double once = 3 * 2.0 * 16384 * 8 * 128 * 2;
  EXPECT_EQ(forward_bytes(graph), once);
  EXPECT_EQ(backward_bytes(graph), once + once) << "K, V gathered again; dK, dV reduced and scattered";
}

/// Pairs of all steps together at one ring coordinate.
std::int64_t pairs_at(const OpGraph& graph, std::int64_t coordinate) {
  const BlockTemplate& block = lab::layer_of(graph);
  const Body& body = block.body(Phase::forward);
  std::int64_t sum = 0;
  for (const Op& op : body.ops) {
    if (std::holds_alternative<AttentionWork>(op.work)) {
      sum += std::get<kernel::Attention>(kernel_of(graph, block, body, op, {.ring = coordinate})).pairs;
    }
  }
  return sum;
}

/// As PyTorch gathers: all keys at once, attention for each rank's.
lab::Bench stepping(std::int64_t sequence) {
  lab::Bench bench = lab::bench("llama-3.1-8b", ring(4, sequence, RingExchange::all_gather));
  bench.framework.ring_steps_through_gathered.value = 1;
  return bench;
}

TEST(Ring, gathered_keys_may_be_gone_through_rank_by_rank) {
  // One gather forward and one backward, R sends of dK and dV in fp32; the steps of a ring, pair by pair.
  const OpGraph graph = stepping(65536).after({"ring"});
  const OpGraph travelling = lab::bench("llama-3.1-8b", ring(4, 65536)).after({"ring"});
  const double once = 2.0 * 16384 * 8 * 128;
  EXPECT_EQ(forward_bytes(graph), 3 * once * 2);
  EXPECT_EQ(backward_bytes(graph), 3 * once * 2 + 4 * once * 4);
  EXPECT_EQ(
      lab::count(lab::layer_of(graph), {.phase = Phase::forward, .purpose = Purpose::ring}, CollectiveKind::all_gather),
      1);
  for (std::int64_t coordinate = 0; coordinate < 4; ++coordinate) {
    EXPECT_EQ(pairs_at(graph, coordinate), pairs_at(travelling, coordinate));
  }
  EXPECT_THAT(verify(graph), testing::IsEmpty());
}

TEST(Ring, a_part_of_keys_that_were_not_gathered_is_found) {
  OpGraph graph = lab::bench("llama-3.1-8b", ring(4, 65536)).after({"ring"});
  for (BlockTemplate& block : graph.templates) {
    for (Op& op : block.body(Phase::forward).ops) {
      if (auto* work = std::get_if<AttentionWork>(&op.work)) {
        work->gathered_keys = work->key_shift == 2;
      }
    }
  }
  EXPECT_THAT(verify_shapes(graph), Contains(HasSubstr("which was not gathered over the ring")));
}

TEST(Ring, kernels_wait_where_the_stack_awaits_each_exchange) {
  lab::Bench bench = stepping(65536);
  bench.framework.ring_overlaps.value = 0;
  const OpGraph graph = bench.after({"ring"});
  for (const Op& op : lab::layer_of(graph).body(Phase::forward).ops) {
    EXPECT_NE(op.stream, Stream::ring_comm) << op.name;
  }
}

TEST(Ring, layout_changes_no_byte) {
  for (const Layout layout : {Layout::contiguous, Layout::striped}) {
    Plan plan = ring(4, 65536);
    plan.ring_layout = layout;
    EXPECT_EQ(forward_bytes(lab::bench("llama-3.1-8b", plan).after({"ring"})), 3 * 2.0 * 16384 * 8 * 128 * 2);
  }
}

TEST(Ring, zigzag_balances_exactly_and_contiguous_does_not) {
  constexpr std::int64_t kTokens = 4096;
  const OpGraph zigzag = lab::bench("llama-3.1-8b", ring(4, kTokens)).after({"ring"});
  // Half of a causal square, a quarter of it each.
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(pairs_at(zigzag, rank), kTokens * (kTokens + 1) / 2 / 4);
  }
  Plan plan = ring(4, kTokens);
  plan.ring_layout = Layout::contiguous;
  const OpGraph contiguous = lab::bench("llama-3.1-8b", plan).after({"ring"});
  // Rank r sees r whole squares of 1024 and its own triangle.
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(pairs_at(contiguous, rank), rank * 1024 * 1024 + 1024 * 1025 / 2);
  }
  EXPECT_TRUE(work_depends_on_ring(contiguous));
}

TEST(Ring, a_sequence_that_does_not_divide_is_told_the_next_that_does) {
  const lab::Bench bench = lab::bench("llama-3.1-8b", ring(4, 65537));
  const auto reasons = check(bench.whole_plan());
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_THAT(reasons[0].reason, HasSubstr("65537 tokens do not divide into 8 equal parts"));
  EXPECT_EQ(reasons[0].suggestion, "pad to 65544 tokens, or cut to 65536");
}

TEST(Ring, a_transfer_of_another_tensor_than_attention_reads_is_found) {
  OpGraph graph = lab::bench("llama-3.1-8b", ring(4, 65536)).after({"ring"});
  Body& body = graph.templates[1].body(Phase::forward);
  // The second transfer sends this rank's own keys again instead of those that came in.
  const auto named = [&](const char* name) {
    return std::find_if(body.ops.begin(), body.ops.end(), [&](const Op& op) { return op.name == name; });
  };
  const auto second = named("send_kv_fwd_1");
  ASSERT_NE(second, body.ops.end());
  second->reads = named("send_kv_fwd_0")->reads;
  EXPECT_THAT(verify_shapes(graph), Contains(AllOf(HasSubstr("forward.attention_2"),
                                                   HasSubstr("as of 2 hops on the ring, but that tensor made 1"))));
}

TEST(Ring, a_missing_step_is_found) {
  OpGraph graph = lab::bench("llama-3.1-8b", ring(4, 65536)).after({"ring"});
  Body& body = graph.templates[1].body(Phase::forward);
  std::erase_if(body.ops, [](const Op& op) { return op.name == "attention_3" || op.name == "merge_3"; });
  EXPECT_THAT(verify_shapes(graph), Contains(HasSubstr("the ring of 4 is seen in 3 steps that do not cover it")));
}

TEST(Usp, volumes_are_ulysses_on_its_group_and_ring_on_the_other) {
  if (!lab::has("ulysses")) {
    GTEST_SKIP() << "one half of the combination is not in the catalogue";
  }
  // arXiv 2405.07719: ulysses 4 × ring 2 on llama-3.1-8b; s = 65536/8 tokens. The ring carries heads already split by
  // Ulysses over whole ring parts: s·P tokens × k/P heads.
  Plan plan = ring(2, 65536);
  plan.mesh.set_size(MeshAxis::ulysses, 4);
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"ulysses", "ring"});
  const double s = 8192;

  EXPECT_EQ(lab::sent(graph, {.phase = Phase::forward, .purpose = Purpose::ulysses}), 3.0 / 4 * s * 128 * 2 * 80);
  EXPECT_EQ(forward_bytes(graph), 1 * 2 * s * 8 * 128 * 2);
  EXPECT_EQ(backward_bytes(graph), 1 * 2 * s * 8 * 128 * 2 + 2 * 2 * s * 8 * 128 * 4);
  // Ulysses 16 > 8 key/value heads: the ring carries the repeated heads.
  Plan wide = ring(2, 65536);
  wide.mesh.set_size(MeshAxis::ulysses, 16);
  const OpGraph repeated = lab::bench("llama-3.1-8b", wide).after({"ulysses", "ring"});
  EXPECT_EQ(forward_bytes(repeated), 1 * 2 * 2048.0 * 16 * 128 * 2);
}

TEST(Usp, ring_before_ulysses_is_found) {
  if (!lab::has("ulysses")) {
    GTEST_SKIP() << "one half of the combination is not in the catalogue";
  }
  Plan plan = ring(2, 65536);
  plan.mesh.set_size(MeshAxis::ulysses, 4);
  const lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  OpGraph graph = bench.logical();
  graph.mesh = plan.mesh;
  lab::pass("ring").apply(bench.context(), graph);
  lab::pass("ulysses").apply(bench.context(), graph);
  EXPECT_THAT(verify_shapes(graph), Contains(HasSubstr("hops on the ring")))
      << "each step's keys would come out of an all-to-all instead of the ring's transfer";
}

TEST(Ring, stripes_must_divide_the_blocks_of_a_sparse_pattern) {
  Plan plan = ring(3, 3 * 4096);
  plan.ring_layout = Layout::striped;
  plan.block_sparse = BlockSparse{.block = 64, .local = 4};
  const auto found = lab::pass("ring").check(lab::bench("llama-3.1-8b", plan).context());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].reason, "blocks of 64 tokens do not divide into 3 stripes");
  plan.ring_layout = Layout::zigzag;
  EXPECT_TRUE(lab::pass("ring").check(lab::bench("llama-3.1-8b", plan).context()).empty());
}

TEST(Ring, gradients_travel_in_the_type_and_as_often_as_the_stack_sends_them) {
  // llama-3.1-8b, ring 4: s = 16384 tokens, 8 key/value heads. TransformerEngine: dK, dV in bf16, R−1 sends; others
  // fp32 and R. Keys and values again: R−1 of 2·s·k·d·2.
  const auto backward = [](std::int64_t wire, std::int64_t extra) {
    lab::Bench bench = lab::bench("llama-3.1-8b", ring(4, 65536));
    bench.framework.ring_gradient_wire_bytes.value = static_cast<double>(wire);
    bench.framework.ring_gradient_extra_send.value = extra;
    return backward_bytes(bench.after({"ring"}));
  };
  const double block = 2 * 16384.0 * 8 * 128;
  EXPECT_EQ(backward(4, 1), 3 * block * 2 + 4 * block * 4);
  EXPECT_EQ(backward(2, 0), 3 * block * 2 + 3 * block * 2);
}

TEST(Ring, carries_all_query_heads_where_the_stack_repeats_keys_and_values) {
  lab::Bench bench = lab::bench("llama-3.1-8b", ring(4, 65536));
  bench.framework.ring_repeats_kv.value = 1;
  const OpGraph graph = bench.after({"ring"});
  const double block = 2 * 16384.0 * 32 * 128;
  EXPECT_EQ(forward_bytes(graph), 3 * block * 2);
  EXPECT_EQ(backward_bytes(graph), 3 * block * 2 + 4 * block * 4);
  EXPECT_NEAR(model_flops(graph) / model_flops(bench.logical()), 1, 1e-12);
}

TEST(Ring, keeps_what_it_received_to_the_end_where_the_stack_does) {
  // Of three received blocks of keys, each is freed by the step that attends to it, or all by the op that ends the
  // ring.
  const auto freed_at_the_end = [](std::int64_t keeps) {
    lab::Bench bench = lab::bench("llama-3.1-8b", ring(4, 65536));
    bench.framework.ring_keeps_received.value = keeps;
    const OpGraph graph = bench.after({"ring"});
    const Body& body = graph.templates[1].body(Phase::forward);
    const auto end = std::find_if(body.ops.begin(), body.ops.end(), [](const Op& op) { return op.name == "finish_o"; });
    return std::count_if(end->frees.begin(), end->frees.end(),
                         [&](TensorId id) { return graph.templates[1].tensor(id).name.starts_with("k_fwd"); });
  };
  EXPECT_EQ(freed_at_the_end(0), 0);
  EXPECT_EQ(freed_at_the_end(1), 3);
}

}  // namespace
}  // namespace ulysim::strategies
