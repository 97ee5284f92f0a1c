// Which question this answers: is the curve of bytes what a pencil draws, and do books that do not balance end in a
// sentence?

#include "sim/memory/accountant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "sim/base/check.h"

namespace ulysim::memory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using workload::MemoryKind;
using workload::Phase;
using workload::Port;
using workload::Space;

workload::Tensor tensor(std::string name, std::int64_t bytes) {
  return {.name = std::move(name), .shape = {{.dim = workload::Dim::tokens, .size = bytes}}, .element_bytes = 1};
}

std::vector<std::pair<std::int64_t, std::int64_t>> points(const Usage& usage) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const Sample& sample : usage.curve) {
    out.emplace_back(sample.at.value(), sample.bytes);
  }
  return out;
}

std::vector<std::pair<std::string, std::int64_t>> names(const Usage& usage) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (const Holding& holding : usage.holdings) {
    out.emplace_back(holding.name, holding.bytes);
  }
  return out;
}

/// Two blocks of one kind, forward then backward; ops run one after the other, 10 ps each.
///   forward  0: allocates out (100) and saved (30)    backward 0: frees saved, allocates grad (40), frees its input
/// Weights of 1000 for each block; a host copy of 7 lives from forward to backward.
struct TwoBlocks {
  workload::OpGraph graph;
  TensorId weights, in, out, saved, host, grad_in;

  TwoBlocks() {
    workload::BlockTemplate first{.name = "embedding", .instances = 1};
    auto out_port = tensor("x", 100);
    out_port.port = Port::output;
    first.body(Phase::forward).ops.push_back({.name = "lookup", .allocs = {first.add(out_port)}});

    workload::BlockTemplate layer{.name = "layer", .instances = 2};
    auto states = tensor("weights", 1000);
    states.persistent = true;
    states.kind = MemoryKind::weights;
    weights = layer.add(states);
    auto input = tensor("x", 100);
    input.port = Port::input;
    in = layer.add(input);
    out = layer.add(out_port);
    saved = layer.add(tensor("saved", 30));
    auto on_host = tensor("stash", 7);
    on_host.space = Space::host;
    on_host.kind = MemoryKind::checkpoints;
    host = layer.add(on_host);
    layer.body(Phase::forward).ops.push_back({.name = "forward", .allocs = {out, saved, host}});
    layer.body(Phase::backward).ops.push_back({.name = "backward", .frees = {in, saved, host}});

    workload::BlockTemplate head{.name = "head", .instances = 1};
    auto head_in = input;
    head.body(Phase::forward).ops.push_back({.name = "loss", .frees = {head.add(head_in)}});

    graph.templates = {first, layer, head};
    graph.roles.push_back({.program = {
                               {.block_template = TemplateId(0), .block = 0, .phase = Phase::forward},
                               {.block_template = TemplateId(1), .block = 1, .phase = Phase::forward},
                               {.block_template = TemplateId(1), .block = 2, .phase = Phase::forward},
                               {.block_template = TemplateId(2), .block = 3, .phase = Phase::forward},
                               {.block_template = TemplateId(1), .block = 2, .phase = Phase::backward},
                               {.block_template = TemplateId(1), .block = 1, .phase = Phase::backward},
                           }});
  }

  MemoryResult run() const {
    const workload::Schedule schedule = workload::unroll(graph, 0);
    results::RankTimeline rank;
    for (std::size_t op = 0; op < schedule.ops.size(); ++op) {
      const auto begin = static_cast<std::int64_t>(op) * 10;
      rank.spans.push_back({.begin = Instant(begin), .end = Instant(begin + 10)});
    }
    return account(graph, schedule, rank);
  }
};

TEST(Accountant, DrawsTheCurveOfAPencil) {
  const MemoryResult result = TwoBlocks().run();
  EXPECT_THAT(points(result.gpu), ElementsAre(Pair(0, 2000 + 100),  // the embedding's output
                                              Pair(10, 2230),       // + 100 + 30 of layer 1
                                              Pair(20, 2360),       // + 100 + 30 of layer 2
                                              Pair(40, 2260),       // the loss frees layer 2's output
                                              Pair(50, 2130),       // layer 2 frees its input and what it saved
                                              Pair(60, 2000)));     // layer 1 too
  EXPECT_THAT(points(result.host), ElementsAre(Pair(0, 0), Pair(10, 7), Pair(20, 14), Pair(50, 7), Pair(60, 0)));
}

TEST(Accountant, SaysWhatIsAliveAtThePeak) {
  const MemoryResult result = TwoBlocks().run();
  EXPECT_EQ(result.gpu.peak, 2360);
  EXPECT_EQ(result.gpu.peak_at.value(), 20);
  EXPECT_EQ(result.gpu.at_peak[static_cast<std::size_t>(MemoryKind::weights)], 2000);
  EXPECT_EQ(result.gpu.at_peak[static_cast<std::size_t>(MemoryKind::activations)], 360);
  EXPECT_THAT(names(result.gpu), ElementsAre(Pair("layer.weights", 2000), Pair("layer.x", 200),
                                             Pair("embedding.x", 100), Pair("layer.saved", 60)));
  EXPECT_EQ(result.gpu.holdings[1].count, 2);
  EXPECT_EQ(result.host.peak, 14);
  EXPECT_THAT(names(result.host), ElementsAre(Pair("layer.stash", 14)));
}

TEST(Accountant, FreesBeforeItAllocatesAtOneInstant) {
  // Two ops in a row, each with 50 bytes of its own: never 100.
  workload::OpGraph graph;
  workload::BlockTemplate block{.name = "layer", .instances = 1};
  const TensorId a = block.add(tensor("a", 50));
  const TensorId b = block.add(tensor("b", 50));
  block.body(Phase::forward).ops = {{.name = "first", .allocs = {a}, .frees = {a}},
                                    {.name = "second", .allocs = {b}, .frees = {b}}};
  graph.templates.push_back(block);
  graph.roles.push_back({.program = {{.last_micro_batch = true}}});
  const workload::Schedule schedule = workload::unroll(graph, 0);
  const results::RankTimeline rank{
      .spans = {{.begin = Instant(0), .end = Instant(5)}, {.begin = Instant(5), .end = Instant(9)}}};
  EXPECT_EQ(account(graph, schedule, rank).gpu.peak, 50);
}

TEST(Accountant, GradientsInPlaceTakeNothingBeside) {
  // 50 bytes are written over 50 that are read for the last time: 100 apart, 50 in place.
  for (const bool in_place : {false, true}) {
    workload::OpGraph graph;
    workload::BlockTemplate block{.name = "layer", .instances = 1};
    const TensorId a = block.add(tensor("a", 50));
    const TensorId b = block.add(tensor("b", 50));
    block.body(Phase::forward).ops = {{.name = "make", .allocs = {a}},
                                      {.name = "replace", .allocs = {b}, .frees = {a}, .in_place = in_place},
                                      {.name = "use", .frees = {b}}};
    graph.templates.push_back(block);
    graph.roles.push_back({.program = {{.last_micro_batch = true}}});
    const workload::Schedule schedule = workload::unroll(graph, 0);
    const results::RankTimeline rank{.spans = {{.begin = Instant(0), .end = Instant(5)},
                                               {.begin = Instant(5), .end = Instant(9)},
                                               {.begin = Instant(9), .end = Instant(12)}}};
    EXPECT_EQ(account(graph, schedule, rank).gpu.peak, in_place ? 50 : 100);
  }
}

TEST(Accountant, ALoopHoldsOneTripAtATime) {
  // 90 tokens in three trips: the inner tensor takes 30, the outer one all of its 90.
  workload::OpGraph graph;
  workload::BlockTemplate block{.name = "layer", .instances = 1};
  auto inner = tensor("inner", 90);
  inner.loop = 0;
  const TensorId in_loop = block.add(inner);
  const TensorId outer = block.add(tensor("outer", 90));
  workload::Body& body = block.body(Phase::forward);
  body.loops.push_back({.name = "tiles", .trips = 3});
  body.ops = {{.name = "up", .allocs = {in_loop, outer}, .loop = 0}, {.name = "down", .frees = {in_loop}, .loop = 0}};
  body.ops.push_back({.name = "after", .frees = {outer}});
  graph.templates.push_back(block);
  graph.roles.push_back({.program = {{.last_micro_batch = true}}});
  const workload::Schedule schedule = workload::unroll(graph, 0);
  const results::RankTimeline rank{.spans = {{.begin = Instant(0), .end = Instant(15)},
                                             {.begin = Instant(15), .end = Instant(30)},
                                             {.begin = Instant(30), .end = Instant(35)}}};
  EXPECT_THAT(points(account(graph, schedule, rank).gpu), ElementsAre(Pair(0, 120), Pair(30, 90), Pair(35, 0)));
}

TEST(Accountant, ABlockStaysUntilTheTransferThatReadsItEnds) {
  // A ring's transfer of 90 bytes runs from 0 to 30 beside a kernel that reads the same block and ends at 15, last in
  // program order: the block is there until 30.
  workload::OpGraph graph;
  workload::BlockTemplate block{.name = "layer", .instances = 1};
  const TensorId keys = block.add(tensor("keys", 90));
  const TensorId next = block.add(tensor("next", 10));
  workload::Body& body = block.body(Phase::forward);
  body.ops = {
      {.name = "make", .writes = {keys}, .allocs = {keys}},
      {.name = "send", .reads = {keys}, .writes = {next}, .allocs = {next}, .stream = workload::Stream::ring_comm},
      {.name = "attend", .reads = {keys}, .frees = {keys}},
      {.name = "use", .reads = {next}, .frees = {next}}};
  graph.templates.push_back(block);
  graph.roles.push_back({.program = {{.last_micro_batch = true}}});
  const workload::Schedule schedule = workload::unroll(graph, 0);
  const results::RankTimeline rank{.spans = {{.begin = Instant(0), .end = Instant(5)},
                                             {.begin = Instant(5), .end = Instant(30)},
                                             {.begin = Instant(5), .end = Instant(15)},
                                             {.begin = Instant(30), .end = Instant(35)}}};
  EXPECT_THAT(points(account(graph, schedule, rank).gpu),
              ElementsAre(Pair(0, 90), Pair(5, 100), Pair(30, 10), Pair(35, 0)));
}

TEST(Accountant, ARecordedBufferServesNothingIssuedBeforeTheHostKnewItFree) {
  // An exchange of 90 bytes runs from 5 to 30; its buffer is freed by the kernel at 30. Issued at 2, the next kernel
  // (from 35 on) was given memory while the exchange was still to come; the one after it was issued at 31.
  for (const bool recorded : {false, true}) {
    workload::OpGraph graph;
    workload::BlockTemplate block{.name = "layer", .instances = 1};
    auto sent = tensor("sent", 90);
    sent.recorded = recorded;
    const TensorId buffer = block.add(sent);
    const TensorId kept = block.add(tensor("kept", 10));
    block.body(Phase::forward).ops = {
        {.name = "pack", .writes = {buffer}, .allocs = {buffer}},
        {.name = "exchange", .reads = {buffer}, .frees = {buffer}, .stream = workload::Stream::ulysses_comm},
        {.name = "unpack"},
        {.name = "early", .allocs = {kept}},
        {.name = "late", .frees = {kept}}};
    graph.templates.push_back(block);
    graph.roles.push_back({.program = {{.last_micro_batch = true}}});
    const workload::Schedule schedule = workload::unroll(graph, 0);
    const results::RankTimeline rank{.spans = {{.issued = Instant(0), .begin = Instant(0), .end = Instant(5)},
                                               {.issued = Instant(1), .begin = Instant(5), .end = Instant(30)},
                                               {.issued = Instant(1), .begin = Instant(30), .end = Instant(35)},
                                               {.issued = Instant(2), .begin = Instant(35), .end = Instant(40)},
                                               {.issued = Instant(31), .begin = Instant(40), .end = Instant(45)}}};
    const Usage gpu = account(graph, schedule, rank).gpu;
    if (recorded) {
      EXPECT_THAT(points(gpu), ElementsAre(Pair(0, 90), Pair(35, 100), Pair(40, 10), Pair(45, 0)));
    } else {
      EXPECT_THAT(points(gpu), ElementsAre(Pair(0, 90), Pair(30, 0), Pair(35, 10), Pair(45, 0)));
    }
  }
}

TEST(Accountant, RefusesBooksThatDoNotBalance) {
  TwoBlocks leaking;
  leaking.graph.templates[1].body(Phase::backward).ops[0].frees = {leaking.in, leaking.host};
  try {
    static_cast<void>(leaking.run());
    FAIL() << "layer.saved is never freed";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the books of layer.saved do not balance: 2 left"));
  }
}

}  // namespace
}  // namespace ulysim::memory
