// Where a tensor's life begins and ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workload/small_graph.h"

namespace ulysim::workload {
namespace {

using small::Graph;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Lifetimes, first_writer_to_last_user_over_all_bodies) {
  Graph g;
  const TensorId in = g.given("in");
  const TensorId kept = g.tensor("kept");
  g.kernel("make", {in}, {kept});
  g.kernel("use", {kept}, {in});
  g.op("use_again", ElementwiseWork{}, {kept}, {in}, Stream::compute, Phase::backward);
  place_lifetimes(g.graph);
  EXPECT_THAT(g.body().ops[0].allocs, ElementsAre(kept)) << "and nothing for what is there all the time";
  EXPECT_THAT(g.body().ops[1].frees, IsEmpty());
  EXPECT_THAT(g.body(Phase::backward).ops[0].frees, ElementsAre(kept));
}

TEST(Lifetimes, what_is_written_and_never_read_lives_for_its_op) {
  Graph g;
  const TensorId workspace = g.tensor("workspace");
  g.kernel("make", {}, {workspace});
  place_lifetimes(g.graph);
  EXPECT_THAT(g.body().ops[0].allocs, ElementsAre(workspace));
  EXPECT_THAT(g.body().ops[0].frees, ElementsAre(workspace));
}

TEST(Lifetimes, scratch_lives_for_its_op) {
  Graph g;
  const TensorId in = g.given("in");
  const TensorId buffer = g.tensor("buffer");
  g.kernel("gather", {in}, {in}).scratch = {buffer};
  place_lifetimes(g.graph);
  place_lifetimes(g.graph);
  EXPECT_THAT(g.body().ops[0].allocs, ElementsAre(buffer)) << "placed twice, counted once";
  EXPECT_THAT(g.body().ops[0].frees, ElementsAre(buffer));
}

TEST(Lifetimes, the_taker_of_a_port_frees_it_and_the_giver_allocates) {
  Graph g;
  const TensorId x = g.tensor("x");
  const TensorId y = g.tensor("y");
  g.block().tensor(x).port = Port::input;
  g.block().tensor(y).port = Port::output;
  g.kernel("run", {x}, {y});
  place_lifetimes(g.graph);
  EXPECT_THAT(g.body().ops[0].allocs, ElementsAre(y));
  EXPECT_THAT(g.body().ops[0].frees, ElementsAre(x));
}

}  // namespace
}  // namespace ulysim::workload
