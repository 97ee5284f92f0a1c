// verify() by graphs that are wrong on purpose. What is wrong with strategies' graphs (a forgotten all-to-all, passes
// in the wrong order, a ring that carries another tensor) is under tests/strategies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workload/small_graph.h"

namespace ulysim::workload {
namespace {

using small::Graph;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// given → first → a → second → b → third
Graph chain() {
  Graph g;
  const TensorId in = g.given("in");
  const TensorId a = g.tensor("a");
  const TensorId b = g.tensor("b");
  g.kernel("first", {in}, {a});
  g.kernel("second", {a}, {b});
  g.kernel("third", {b}, {in});
  return g;
}

TEST(Verify, a_sound_graph_has_no_findings) {
  EXPECT_THAT(chain().findings(), IsEmpty());
}

TEST(Verify, a_read_before_any_write) {
  Graph g = chain();
  std::swap(g.body().ops[0], g.body().ops[1]);
  EXPECT_THAT(verify_shapes(g.graph), ElementsAre("work.forward.second: reads a before anything wrote it"));
}

TEST(Verify, an_allocation_that_is_never_freed) {
  Graph g = chain();
  place_lifetimes(g.graph);
  g.body().ops[1].frees.clear();
  EXPECT_THAT(verify(g.graph), ElementsAre("work: a is allocated and never freed"));
}

TEST(Verify, a_second_free) {
  Graph g = chain();
  place_lifetimes(g.graph);
  g.body().ops[2].frees.emplace_back(1);
  EXPECT_THAT(verify(g.graph), ElementsAre("work.third: frees what is not its to free: a"));
}

TEST(Verify, a_use_after_free) {
  Graph g = chain();
  place_lifetimes(g.graph);
  g.body().ops[0].frees.emplace_back(1);
  g.body().ops[1].frees.clear();
  EXPECT_THAT(verify(g.graph), ElementsAre("work.second: uses while it is not allocated a"));
}

TEST(Verify, a_tensor_that_only_the_last_micro_batch_frees) {
  Graph g;
  const TensorId in = g.given("in");
  const TensorId a = g.tensor("a");
  g.kernel("make", {in}, {a});
  g.kernel("use", {a}, {in}).when = When::last_micro_batch;
  EXPECT_THAT(g.findings(), IsEmpty()) << "with one micro-batch, it is the last";
  g.graph.micro_batches = 2;
  EXPECT_THAT(g.findings(), ElementsAre("work: a is allocated and never freed"));
}

TEST(Verify, a_partial_sum_that_is_read_unreduced) {
  Graph g;
  g.graph.mesh.set_size(MeshAxis::tensor, 2);
  const Extent tokens{.dim = Dim::tokens, .size = 4};
  const TensorId sum = g.tensor("sum", {tokens});
  const TensorId other = g.tensor("other", {tokens});
  const TensorId out = g.tensor("out", {tokens});
  for (const TensorId id : {sum, other}) {
    g.block().tensor(id).persistent = true;
  }
  g.block().tensor(sum).partial.insert(MeshAxis::tensor);
  g.kernel("add", {sum, other}, {out});
  EXPECT_THAT(verify_shapes(g.graph),
              Contains("work.forward.add: mixes other (partial over {}) with partial sums over {tensor}"));
}

TEST(Verify, a_product_whose_factors_are_cut_apart) {
  // x holds half of the hidden width, the weight all of it: each rank would multiply rows that do not meet.
  Graph g;
  g.graph.mesh.set_size(MeshAxis::tensor, 2);
  const Extent tokens{.dim = Dim::tokens, .size = 4};
  const Extent ffn{.dim = Dim::ffn, .size = 6};
  const TensorId x = g.tensor("x", {tokens, {.dim = Dim::hidden, .size = 8, .split = {MeshAxis::tensor}}});
  const TensorId w = g.tensor("w", {{.dim = Dim::hidden, .size = 8}, ffn});
  const TensorId y = g.tensor("y", {tokens, ffn});
  g.block().tensor(y).partial.insert(MeshAxis::tensor);
  for (const TensorId id : {x, w}) {
    g.block().tensor(id).persistent = true;
  }
  g.op("up", GemmWork{.m = {Dim::tokens}, .n = {Dim::ffn}, .k = {Dim::hidden}}, {x, w}, {y});
  EXPECT_THAT(verify_shapes(g.graph), ElementsAre("work.forward.up: x has hidden=8/tensor but w has hidden=8"));
}

TEST(Verify, an_all_reduce_makes_it_whole) {
  Graph g;
  g.graph.mesh.set_size(MeshAxis::tensor, 2);
  const TensorId sum = g.given("sum");
  g.block().tensor(sum).partial.insert(MeshAxis::tensor);
  const TensorId whole = g.tensor("whole");
  const TensorId out = g.tensor("out");
  g.op("reduce", CollectiveWork{.kind = CollectiveKind::all_reduce, .axes = {MeshAxis::tensor}}, {sum}, {whole},
       Stream::tensor_comm);
  g.kernel("use", {whole}, {out});
  EXPECT_THAT(g.findings(), IsEmpty());
}

TEST(Verify, a_collective_over_one_rank) {
  Graph g;
  const TensorId sum = g.given("sum");
  g.op("reduce", CollectiveWork{.kind = CollectiveKind::all_reduce, .axes = {MeshAxis::tensor}}, {sum}, {sum},
       Stream::tensor_comm);
  EXPECT_THAT(verify_shapes(g.graph), Contains("work.forward.reduce: a collective over {tensor} has one member"));
}

TEST(Verify, a_gather_that_gathers_nothing) {
  Graph g;
  g.graph.mesh.set_size(MeshAxis::tensor, 2);
  const TensorId part = g.given("part");
  const TensorId out = g.tensor("out");
  g.op("gather", CollectiveWork{.kind = CollectiveKind::all_gather, .axes = {MeshAxis::tensor}}, {part}, {out},
       Stream::tensor_comm);
  EXPECT_THAT(verify_shapes(g.graph), ElementsAre(HasSubstr("is no all_gather over {tensor}")))
      << "its input was never split";
}

TEST(Verify, a_loop_that_is_torn_apart) {
  Graph g = chain();
  g.body().loops.push_back({.name = "tiles", .trips = 4});
  g.body().ops[0].loop = g.body().ops[1].loop = 0;
  EXPECT_THAT(g.findings(), IsEmpty());
  g.body().ops[1].loop = -1;
  g.body().ops[2].loop = 0;
  EXPECT_THAT(verify_shapes(g.graph), ElementsAre("work.forward.third: its loop is not one run of ops"));
}

TEST(Verify, credits_that_wait_for_one_another) {
  // Both units are held until `use`, and the window admits one.
  Graph g;
  const TensorId in = g.given("in");
  const TensorId a = g.tensor("a");
  const TensorId b = g.tensor("b");
  g.kernel("fetch_a", {in}, {a}, Stream::zero_gather).acquire = CreditPool::parameters;
  g.kernel("fetch_b", {in}, {b}, Stream::zero_gather).acquire = CreditPool::parameters;
  g.kernel("use", {a, b}, {in}).release = {CreditPool::parameters};
  g.kernel("end", {in}, {in}).release = {CreditPool::parameters};
  EXPECT_THAT(g.findings(), ElementsAre(AllOf(HasSubstr("deadlock"), HasSubstr("fetch_b of block 0 (zero_gather)"),
                                              HasSubstr("use of block 0"))));
  g.graph.credit_windows[static_cast<std::size_t>(CreditPool::parameters)] = 2;
  EXPECT_THAT(g.findings(), IsEmpty());
}

TEST(Verify, a_credit_that_is_never_given_back) {
  Graph g;
  const TensorId in = g.given("in");
  g.kernel("fetch", {in}, {in}).acquire = CreditPool::parameters;
  EXPECT_THAT(g.findings(), ElementsAre(HasSubstr("1 credits of pool 1 not given back")));
}

/// Two pipeline stages that exchange one tensor each way, in the given order of each.
Graph exchange(bool first_sends_first, bool second_sends_first) {
  Graph g;
  g.graph.templates.push_back({.name = "second", .kind = BlockKind::layer, .instances = 1});
  g.graph.roles[0].name = "stage 0";
  g.graph.roles.push_back(
      {.name = "stage 1", .stage = 1, .program = {{.block_template = TemplateId(1), .last_micro_batch = true}}});
  const std::array order{first_sends_first, second_sends_first};
  for (std::uint32_t role = 0; role < 2; ++role) {
    BlockTemplate& block = g.graph.templates[role];
    const TensorId out = block.add({.name = "out", .shape = {{.size = 8}}, .persistent = true});
    const TensorId in = block.add({.name = "in", .shape = {{.size = 8}}, .persistent = true});
    Op send{.name = "send",
            .work = PipelineWork{.side = PipelineWork::Side::send, .peer_role = 1 - role, .tag = role},
            .reads = {out},
            .stream = Stream::ring_comm};
    Op receive{.name = "receive",
               .work = PipelineWork{.side = PipelineWork::Side::receive, .peer_role = 1 - role, .tag = 1 - role},
               .writes = {in},
               .stream = Stream::ring_comm};
    auto& ops = block.body(Phase::forward).ops;
    ops = order.at(role) ? std::vector{send, receive} : std::vector{receive, send};
  }
  return g;
}

TEST(Verify, a_pipeline_in_which_one_sends_while_the_other_receives) {
  EXPECT_THAT(exchange(true, false).findings(), IsEmpty());
}

TEST(Verify, a_pipeline_in_which_both_receive_first) {
  EXPECT_THAT(exchange(false, false).findings(),
              ElementsAre(AllOf(HasSubstr("deadlock: role stage 0"), HasSubstr("receive of block 0")),
                          HasSubstr("deadlock: role stage 1")));
}

TEST(Verify, a_message_whose_tag_nobody_receives) {
  Graph g = exchange(true, false);
  std::get<PipelineWork>(g.graph.templates[0].body(Phase::forward).ops[0].work).tag = 9;
  EXPECT_THAT(g.findings(), Contains(AllOf(HasSubstr("deadlock"), HasSubstr("send of block 0"))));
}

TEST(Verify, two_roles_of_a_stage_that_enter_other_collectives) {
  Graph g;
  g.graph.mesh.set_size(MeshAxis::tensor, 2);
  const TensorId sum = g.given("sum");
  g.block().tensor(sum).partial.insert(MeshAxis::tensor);
  const TensorId whole = g.tensor("whole");
  g.op("reduce", CollectiveWork{.kind = CollectiveKind::all_reduce, .axes = {MeshAxis::tensor}}, {sum}, {whole},
       Stream::tensor_comm);
  g.graph.templates.push_back({.name = "silent", .kind = BlockKind::layer, .instances = 1});
  g.graph.roles[0].name = "left";
  g.graph.roles.push_back({.name = "right", .program = {{.block_template = TemplateId(1), .last_micro_batch = true}}});
  EXPECT_THAT(g.findings(), ElementsAre("roles left and right enter other collectives"));
  g.graph.roles[1].stage = 1;
  EXPECT_THAT(g.findings(), IsEmpty()) << "other stages have groups of their own";
}

}  // namespace
}  // namespace ulysim::workload
