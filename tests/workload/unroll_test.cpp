// Dependencies of an unrolled program by pencil.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "sim/workload/unroll.h"
#include "tests/workload/small_graph.h"

namespace ulysim::workload {
namespace {

using small::Graph;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint32_t> before(const Schedule& schedule, std::size_t op) {
  const auto span = schedule.dependencies_of(op);
  return {span.begin(), span.end()};
}

TEST(Unroll, names_only_what_another_stream_must_finish) {
  Graph g;
  const TensorId in = g.given("in");
  const TensorId a = g.tensor("a");
  const TensorId b = g.tensor("b");
  const TensorId c = g.tensor("c");
  g.kernel("compute", {in}, {a});                      // 0
  g.kernel("copy", {a}, {b}, Stream::device_to_host);  // 1, after 0
  g.kernel("next", {a}, {c});                          // 2, after 0 by its own stream
  g.kernel("join", {b, c}, {in});                      // 3, after 1; 2 by its own stream
  const Schedule schedule = unroll(g.graph, 0);
  EXPECT_THAT(before(schedule, 0), IsEmpty());
  EXPECT_THAT(before(schedule, 1), ElementsAre(0));
  EXPECT_THAT(before(schedule, 2), IsEmpty());
  EXPECT_THAT(before(schedule, 3), ElementsAre(1));
  EXPECT_THAT(schedule.streams[static_cast<std::size_t>(Stream::compute)], ElementsAre(0, 2, 3));
}

TEST(Unroll, order_edges_hold_across_streams) {
  Graph g;
  const TensorId in = g.given("in");
  const TensorId a = g.tensor("a");
  g.kernel("first", {in}, {a}, Stream::ring_comm);
  g.kernel("second", {in}, {in}).after = {OpId(0)};
  EXPECT_THAT(before(unroll(g.graph, 0), 1), ElementsAre(0));
}

TEST(Unroll, collectives_wait_for_the_kernel_launched_before_them_and_gathers_do_not) {
  Graph g;
  const TensorId in = g.given("in");
  g.kernel("compute", {in}, {});
  g.kernel("collective", {in}, {}, Stream::ring_comm);
  g.kernel("gather", {in}, {}, Stream::zero_gather);
  const Schedule schedule = unroll(g.graph, 0);
  EXPECT_THAT(before(schedule, 1), ElementsAre(0));
  EXPECT_THAT(before(schedule, 2), IsEmpty());
}

/// A front block that hands y on and takes d_y, and a back block that takes x and hands d_x back.
Graph two_blocks() {
  Graph g;
  const TensorId y = g.tensor("y");
  const TensorId d_y = g.tensor("d_y");
  g.block().tensor(y).port = Port::output;
  g.block().tensor(d_y).port = Port::grad_output;
  g.kernel("make", {}, {y});
  g.op("take_back", ElementwiseWork{}, {d_y}, {}, Stream::zero_gather, Phase::backward);
  g.graph.templates.push_back({.name = "back", .kind = BlockKind::layer, .instances = 1});
  // Another tensor first, so that the numbers of the two ends differ.
  (void)g.tensor("unused");
  const TensorId d_x = g.tensor("d_x");
  const TensorId x = g.tensor("x");
  g.block().tensor(x).port = Port::input;
  g.block().tensor(d_x).port = Port::grad_input;
  g.kernel("take", {x}, {}, Stream::zero_gather);
  g.op("make_back", ElementwiseWork{}, {}, {d_x}, Stream::compute, Phase::backward);
  const auto run = [](std::int32_t block, std::int32_t micro_batch, Phase phase) {
    return Instance{.block_template = TemplateId(block),
                    .block = block,
                    .micro_batch = micro_batch,
                    .phase = phase,
                    .last_micro_batch = micro_batch == 1};
  };
  for (const std::int32_t micro : {0, 1}) {
    for (const auto& [block, phase] :
         {std::pair{0, Phase::forward}, {1, Phase::forward}, {1, Phase::backward}, {0, Phase::backward}}) {
      g.graph.roles[0].program.push_back(run(block, micro, phase));
    }
  }
  g.graph.roles[0].program.erase(g.graph.roles[0].program.begin());
  return g;
}

TEST(Unroll, a_port_leads_to_the_neighbours_tensor_of_the_same_micro_batch) {
  const Graph g = two_blocks();
  const Schedule schedule = unroll(g.graph, 0);
  // micro-batch 0: 0 make, 1 take, 2 make_back, 3 take_back; micro-batch 1: 4 … 7
  EXPECT_THAT(before(schedule, 1), ElementsAre(0)) << "what the block before made";
  EXPECT_THAT(before(schedule, 3), ElementsAre(2)) << "and its gradient from the block behind";
  EXPECT_THAT(before(schedule, 5), ElementsAre(4));
  EXPECT_THAT(before(schedule, 7), ElementsAre(6));
}

TEST(Unroll, the_update_waits_for_every_stream) {
  Graph g;
  const TensorId in = g.given("in");
  const TensorId a = g.tensor("a");
  g.kernel("compute", {in}, {a});
  g.kernel("reduce", {a}, {in}, Stream::zero_reduce);
  g.kernel("copy", {a}, {a}, Stream::device_to_host);
  g.op("adam", ElementwiseWork{}, {}, {in}, Stream::host_work, Phase::update);
  g.graph.roles[0].program.push_back(
      {.block_template = TemplateId(0), .block = 1, .phase = Phase::update, .last_micro_batch = true});
  EXPECT_THAT(before(unroll(g.graph, 0), 3), ElementsAre(0, 1, 2));
}

TEST(Unroll, what_only_the_last_micro_batch_does_is_left_out_of_the_others) {
  Graph g;
  const TensorId in = g.given("in");
  g.kernel("each", {in}, {in});
  g.kernel("last", {in}, {in}).when = When::last_micro_batch;
  auto& program = g.graph.roles[0].program;
  program[0].last_micro_batch = false;
  program.push_back(program[0]);
  program[1].micro_batch = 1;
  program[1].last_micro_batch = true;
  const Schedule schedule = unroll(g.graph, 0);
  std::vector<std::string> names;
  for (const FlatOp& flat : schedule.ops) {
    names.push_back(flat.op->name);
  }
  EXPECT_THAT(names, ElementsAre("each", "each", "last"));
}

TEST(Unroll, a_loop_is_one_op_of_many_trips) {
  Graph g;
  const TensorId in = g.given("in");
  g.body().loops.push_back({.name = "tiles", .trips = 5});
  g.kernel("tile", {in}, {in}).loop = 0;
  const Schedule schedule = unroll(g.graph, 0);
  ASSERT_EQ(schedule.ops.size(), 1U);
  EXPECT_EQ(schedule.ops[0].trips, 5);
}

}  // namespace
}  // namespace ulysim::workload
