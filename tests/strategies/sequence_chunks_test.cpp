// FPDT (arXiv 2408.16978; DeepSpeed sequence/fpdt_layer.py) by its formulas, u = S/chunk chunks, per layer:
//   exchanges  as Ulysses, u times on 1/u of the tokens: the same volume
//   to host    forward: Q, K, V, O of 2 B and statistics of 4 B an element once each
//   from host  forward: K and V of the i chunks before each chunk i: u(u−1)/2 chunks
//              backward: K and V once; Q, O, dO, statistics of chunk q for each chunk of keys up to q: u(u+1)/2 chunks,
//              and dQ in fp32 for all but the first chunk of keys: u(u−1)/2
// A chunk of one rank has c/P tokens × a heads = c tokens × a/P heads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/workload/dump.h"
#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using testing::HasSubstr;
using namespace workload;

Plan chunked(std::int64_t chunk, std::int64_t ulysses, std::int64_t sequence = 65536) {
  Plan plan = lab::plain_plan(sequence);
  plan.mesh.set_size(MeshAxis::ulysses, ulysses);
  plan.sequence_chunk = chunk;
  return plan;
}

OpGraph graph_of(const char* model, const Plan& plan) {
  return lab::bench(model, plan).after({"ulysses", "sequence-chunks"});
}

/// Bytes that the copies of a body move one way.
double copied(const OpGraph& graph, Phase phase, Stream way) {
  const BlockTemplate& layer = lab::layer_of(graph);
  const Body& body = layer.body(phase);
  double sum = 0;
  for (const Op& op : body.ops) {
    if (std::holds_alternative<CopyWork>(op.work) && op.stream == way) {
      sum += static_cast<double>(payload_of(graph, layer, body, op).value());
    }
  }
  return sum;
}

TEST(SequenceChunks, exchange_what_ulysses_does) {
  for (const char* model : {"llama-2-7b", "llama-3.1-8b"}) {
    const OpGraph whole = lab::bench(model, chunked(65536, 8)).after({"ulysses"});
    const OpGraph cut = graph_of(model, chunked(8192, 8));
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      const lab::Asked asked{.phase = phase, .purpose = Purpose::ulysses};
      EXPECT_EQ(lab::sent(cut, asked), lab::sent(whole, asked)) << model;
      EXPECT_EQ(lab::count(lab::layer_of(cut), asked, CollectiveKind::all_to_all), 4 * 8) << model;
    }
  }
}

TEST(SequenceChunks, move_past_chunks_to_the_host_and_back) {
  for (const std::int64_t u : {2, 3, 8}) {
    SCOPED_TRACE(u);
    // llama-3.1-8b on 8: of a chunk a rank has 4 query heads and 1 key/value head of 128, c tokens each.
    const OpGraph graph = graph_of("llama-3.1-8b", chunked(8192, 8, 8192 * u));
    const auto n = static_cast<double>(u);
    const double q = 8192.0 * 4 * 128 * 2;  // one chunk of queries, outputs or their gradients
    const double kv = 2 * 8192.0 * 1 * 128 * 2;
    const double lse = 8192.0 * 4 * 4;
    EXPECT_EQ(copied(graph, Phase::forward, Stream::device_to_host), n * (2 * q + kv + lse));
    EXPECT_EQ(copied(graph, Phase::forward, Stream::host_to_device), n * (n - 1) / 2 * kv);
    EXPECT_EQ(copied(graph, Phase::backward, Stream::host_to_device),
              n * kv + n * (n + 1) / 2 * (3 * q + lse) + n * (n - 1) / 2 * 2 * q);
    EXPECT_EQ(copied(graph, Phase::backward, Stream::device_to_host), n * q + n * (n - 1) / 2 * 2 * q);
  }
}

TEST(SequenceChunks, do_all_pairs_and_no_more) {
  for (const char* model : {"llama-3.1-8b", "deepseek-v3"}) {
    const lab::Bench bench = lab::bench(model, chunked(4096, 8));
    const OpGraph logical = bench.logical();
    const OpGraph graph = bench.after({"ulysses", "sequence-chunks"});
    EXPECT_NEAR(model_flops(graph) / model_flops(logical), 1, 1e-12) << model;
    EXPECT_NEAR(executed_flops(graph) / executed_flops(logical), 1, 1e-12) << model;
  }
}

TEST(SequenceChunks, hold_one_chunk_of_what_attention_reads) {
  const OpGraph graph = graph_of("llama-3.1-8b", chunked(8192, 8));
  const BlockTemplate& layer = lab::layer_of(graph);
  for (const Body& body : layer.bodies) {
    for (const Op& op : body.ops) {
      if (std::holds_alternative<AttentionWork>(op.work)) {
        EXPECT_EQ(held_bytes(graph, body, layer.tensor(op.reads[0])).value(), 8192 * 4 * 128 * 2) << op.name;
        EXPECT_EQ(held_bytes(graph, body, layer.tensor(op.reads[1])).value(), 8192 * 1 * 128 * 2) << op.name;
      }
    }
  }
}

TEST(SequenceChunks, of_the_whole_sequence_are_the_identity) {
  EXPECT_EQ(dump(graph_of("llama-3.1-8b", chunked(65536, 8))),
            dump(lab::bench("llama-3.1-8b", chunked(65536, 8)).after({"ulysses"})));
}

TEST(SequenceChunks, a_step_left_out_is_found) {
  OpGraph graph = graph_of("llama-3.1-8b", chunked(8192, 8));
  Body& body = graph.templates[1].body(Phase::forward);
  const auto past =
      std::find_if(body.ops.begin(), body.ops.end(), [](const Op& op) { return op.name == "attention_5_past"; });
  ASSERT_NE(past, body.ops.end());
  --past->repeats;
  EXPECT_THAT(verify_shapes(graph), testing::Contains(HasSubstr("its parts run 35 times and not 36")));
}

TEST(SequenceChunks, that_do_not_fit_are_told_what_would) {
  const auto complaint = [](const Plan& plan, const char* model = "llama-3.1-8b") {
    const lab::Bench bench = lab::bench(model, plan);
    const auto found = lab::pass("sequence-chunks").check(bench.context());
    return found.empty() ? std::string() : found[0].reason + "; " + found[0].suggestion;
  };
  EXPECT_EQ(complaint(chunked(8192, 8)), "");
  EXPECT_EQ(complaint(chunked(10000, 8)),
            "65536 tokens are no multiple of sequence_chunk 10000; pad to 70000 tokens, or cut to 60000");
  EXPECT_EQ(complaint(chunked(4, 8)),
            "sequence_chunk 4 does not divide into 8 equal parts (tensor · ulysses); sequence_chunk 8");
  EXPECT_THAT(complaint(chunked(64, 8)), HasSubstr("1024 chunks of 64 tokens; at most 256 are simulated"));
  EXPECT_THAT(complaint(chunked(8192, 8), "gemma-2-9b"), HasSubstr("plain causal mask only"));
  Plan ring = chunked(8192, 4);
  ring.mesh.set_size(MeshAxis::ring, 2);
  EXPECT_THAT(complaint(ring), HasSubstr("ring 2"));
}

}  // namespace
}  // namespace ulysim::strategies
