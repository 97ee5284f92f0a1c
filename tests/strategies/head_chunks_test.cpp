// Untied Ulysses (UPipe, arXiv 2602.21196): attention in n rounds over parts of the heads. In words: each key/value
// head is projected and sent once (its "GQA schedule"), so forward sends what Ulysses sends,
//   (P−1)/P · s·d·e·(a + 2·max(k, P) + a),
// in 2·n exchanges of queries and outputs and 2·n/g of keys and values, g = a/k rounds on the same keys; backward makes
// a round's queries, keys and values again and exchanges output and gradient for it: the same volume once more beside
// that of Ulysses. Llama-8B on 8 in 4 rounds: 10 exchanges forward, 20 backward (untied_ulysses/fully_fused_attn.py).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using testing::HasSubstr;
using namespace workload;

Plan rounds(std::int64_t chunks, std::int64_t ulysses, std::int64_t sequence = 65536) {
  Plan plan = lab::plain_plan(sequence);
  plan.mesh.set_size(MeshAxis::ulysses, ulysses);
  plan.head_chunks = chunks;
  return plan;
}

OpGraph graph_of(const char* model, const Plan& plan) {
  return lab::bench(model, plan).after({"tensor", "head-chunks", "ulysses", "ring"});
}

lab::Asked forward() {
  return {.phase = Phase::forward, .purpose = Purpose::ulysses};
}
lab::Asked backward() {
  return {.phase = Phase::backward, .purpose = Purpose::ulysses};
}
lab::Asked again() {
  return {.phase = Phase::backward, .purpose = Purpose::ulysses, .recomputed = true};
}

TEST(HeadChunks, send_what_ulysses_sends_and_in_backward_once_more) {
  struct Case {
    const char* model{};
    std::int64_t chunks{};
    std::int64_t ulysses{};
    double heads{};  ///< a + 2·max(k, P) + a
  };
  for (const Case& c : {Case{"llama-2-7b", 4, 8, 128}, Case{"llama-3.1-8b", 4, 8, 80}, Case{"llama-3.1-8b", 2, 8, 80},
                        Case{"llama-3.1-8b", 8, 4, 80}, Case{"llama-3.1-8b", 2, 16, 96}}) {
    SCOPED_TRACE(fmt::format("{} in {} rounds on {}", c.model, c.chunks, c.ulysses));
    const OpGraph graph = graph_of(c.model, rounds(c.chunks, c.ulysses));
    const auto p = static_cast<double>(c.ulysses);
    const double expected = (p - 1) / p * (65536 / p) * 128 * 2 * c.heads;
    EXPECT_EQ(lab::sent(graph, forward()), expected);
    EXPECT_EQ(lab::sent(graph, backward()), expected);
    EXPECT_EQ(lab::sent(graph, again()), expected);
  }
}

TEST(HeadChunks, exchange_keys_and_values_once_for_all_rounds_on_them) {
  // 32 query heads in 4 rounds of 8; 8 key/value heads serve all four: 2·4 + 2·4/4 = 10, and twice that in backward.
  const OpGraph llama = graph_of("llama-3.1-8b", rounds(4, 8));
  const BlockTemplate& layer = lab::layer_of(llama);
  EXPECT_EQ(lab::count(layer, forward(), CollectiveKind::all_to_all), 10);
  EXPECT_EQ(lab::count(layer, backward(), CollectiveKind::all_to_all) +
                lab::count(layer, again(), CollectiveKind::all_to_all),
            20);
  // As many key/value heads as query heads: every round has its own.
  const OpGraph mha = graph_of("llama-2-7b", rounds(4, 8));
  EXPECT_EQ(lab::count(lab::layer_of(mha), forward(), CollectiveKind::all_to_all), 16);
}

TEST(HeadChunks, hold_the_queries_and_buffers_of_one_round) {
  // 65,536/8 tokens × 32 heads × 128 × 2 B = 64 MiB of queries; a quarter of them in each of four rounds.
  const OpGraph graph = graph_of("llama-2-7b", rounds(4, 8));
  const BlockTemplate& layer = lab::layer_of(graph);
  std::int64_t seen = 0;
  for (const Body& body : layer.bodies) {
    for (const Op& op : body.ops) {
      if (const auto* work = std::get_if<AttentionWork>(&op.work)) {
        EXPECT_EQ(held_bytes(graph, body, layer.tensor(op.reads[0])).value(), 16 << 20) << op.name;
        EXPECT_EQ(held_bytes(graph, body, layer.tensor(op.reads[1])).value(), 16 << 20) << op.name;
        EXPECT_EQ(std::get<kernel::Attention>(kernel_of(graph, layer, body, op, {})).heads, 1) << op.name;
        EXPECT_EQ(work->mask.kind, Mask::Kind::causal);
        ++seen;
      }
    }
  }
  EXPECT_EQ(seen, 8);
}

TEST(HeadChunks, do_the_model_s_work_and_the_projections_once_more) {
  for (const char* model : {"llama-2-7b", "llama-3.1-8b", "deepseek-v3"}) {
    lab::Bench bench = lab::bench(model, rounds(4, 8));
    const OpGraph logical = bench.logical();
    const OpGraph graph = bench.after({"head-chunks", "ulysses"});
    EXPECT_NEAR(model_flops(graph) / model_flops(logical), 1, 1e-12) << model;
    // Llama-2: q, k, v of 4096² each for 65,536 tokens and two layers, made twice.
    if (model == std::string("llama-2-7b")) {
      const double more = executed_flops(graph).value() - executed_flops(logical).value();
      EXPECT_NEAR(more / (2 * 2.0 * 65536 * 3 * 4096 * 4096), 1, 1e-9);
    }
  }
}

TEST(HeadChunks, run_with_a_ring_and_under_tensor_parallelism) {
  Plan plan = rounds(2, 4);
  plan.mesh.set_size(MeshAxis::ring, 2);
  plan.mesh.set_size(MeshAxis::tensor, 2);
  plan.recompute = Recompute::full;
  plan.zero = 3;
  const lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  ASSERT_TRUE(check(bench.whole_plan()).empty());
  EXPECT_NO_THROW((void)parallelize(bench.whole_plan(), bench.logical()));
}

TEST(HeadChunks, that_do_not_fit_the_heads_are_told_what_would) {
  const auto complaint = [](const char* model, const Plan& plan) {
    const lab::Bench bench = lab::bench(model, plan);
    const auto found = lab::pass("head-chunks").check(bench.context());
    return found.empty() ? std::string() : found[0].reason + "; " + found[0].suggestion;
  };
  // 32 heads over 8 ranks: a round has 8, 16 or 32 heads.
  EXPECT_EQ(complaint("llama-3.1-8b", rounds(8, 8)),
            "32 query and 8 key/value heads over ulysses 8 do not divide into 8 rounds; head_chunks of 1, 2, 4");
  EXPECT_EQ(complaint("llama-3.1-8b", rounds(3, 8)),
            "32 query and 8 key/value heads over ulysses 8 do not divide into 3 rounds; head_chunks of 1, 2, 4");
  // One rank, 28 query and 4 key/value heads: rounds of 2 heads on 2 keys (14), of 4 (7), 28 (1), 1 (28); 14 heads do
  // not share 4 keys.
  EXPECT_THAT(complaint("qwen2.5-7b", rounds(2, 1)), HasSubstr("head_chunks of 1, 7, 14, 28"));
  Plan selective = rounds(4, 8);
  selective.recompute = Recompute::selective;
  EXPECT_THAT(complaint("llama-3.1-8b", selective), HasSubstr("recompute: full, or none"));
}

}  // namespace
}  // namespace ulysim::strategies
