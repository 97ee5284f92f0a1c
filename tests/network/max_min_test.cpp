// Does progressive filling give the rates that a pencil gives?
#include "sim/network/max_min.h"

#include <gmock/gmock.h>

#include "sim/base/check.h"
#include "tests/network/problems.h"

namespace ulysim::network::testing {
namespace {

using ::testing::ElementsAre;

TEST(MaxMin, one_flow_takes_its_narrowest_link) {
  EXPECT_THAT(solve({.capacities = {10, 4, 7}, .classes = {{{0, 1}, {1, 1}, {2, 1}}}}), ElementsAre(4));
}

TEST(MaxMin, equal_flows_share_a_link_equally) {
  EXPECT_THAT(solve({.capacities = {12}, .classes = {{{0, 1}}, {{0, 1}}, {{0, 1}}}}), ElementsAre(4, 4, 4));
}

// The example of the header: A = 10, B = 6, C = 20; flows A, A B, B C, C.
TEST(MaxMin, worked_example_of_the_header) {
  EXPECT_THAT(solve({.capacities = {10, 6, 20}, .classes = {{{0, 1}}, {{0, 1}, {1, 1}}, {{1, 1}, {2, 1}}, {{2, 1}}}}),
              ElementsAre(7, 3, 3, 17));
}

// The classical "parking lot": a long flow over three links of 1, one short flow on each: all get a half.
TEST(MaxMin, a_long_flow_does_not_get_less_than_the_short_ones_it_meets) {
  EXPECT_THAT(solve({.capacities = {1, 1, 1}, .classes = {{{0, 1}, {1, 1}, {2, 1}}, {{0, 1}}, {{1, 1}}, {{2, 1}}}}),
              ElementsAre(0.5, 0.5, 0.5, 0.5));
}

// Three members of class 0 and one of class 1 on a link of 8: everybody gets 2. Class 1 also has a link of its own.
TEST(MaxMin, members_count_on_a_link_of_a_class) {
  EXPECT_THAT(solve({.capacities = {8, 100}, .classes = {{{0, 3}}, {{0, 1}, {1, 1}}}}), ElementsAre(2, 2));
}

// An all-to-all of 8 GPUs in 2 nodes of 4, one NIC of 50 a node's GPU, NVLink of 450: each GPU sends 3 flows inside and
// 4 outside. NIC: 50/4 = 12.5 each; NVLink carries all seven: (450 − 4·12.5)/3 = 400/3.
TEST(MaxMin, all_to_all_over_two_nodes) {
  const auto rates =
      solve({.capacities = {450, 450, 50, 50}, .classes = {{{0, 3}, {1, 3}}, {{0, 4}, {1, 4}, {2, 4}, {3, 4}}}});
  EXPECT_THAT(rates, ElementsAre(400.0 / 3.0, 12.5));
}

TEST(MaxMin, a_solver_forgets_its_last_problem) {
  MaxMin solver({6, 6});
  std::vector<double> rates;
  const std::vector<Crossing> first{{0, 1}, {1, 1}};
  const std::vector<Crossing> second{{1, 1}};
  const std::vector<std::span<const Crossing>> both{first, second};
  solver.solve(both, rates);
  EXPECT_THAT(rates, ElementsAre(3, 3));
  solver.solve(std::span(both).subspan(1), rates);
  EXPECT_THAT(rates, ElementsAre(6));
  solver.solve({}, rates);
  EXPECT_THAT(rates, ElementsAre());
}

TEST(MaxMin, refuses_what_has_no_solution) {
  EXPECT_THROW(MaxMin({1.0, 0.0}), InternalError);
  EXPECT_THROW(MaxMin({-1.0, 1.0}), InternalError);
  EXPECT_THROW(static_cast<void>(solve({.capacities = {1}, .classes = {{}}})), InternalError);
  EXPECT_THROW(static_cast<void>(solve({.capacities = {1}, .classes = {{{1, 1}}}})), InternalError);
  EXPECT_THROW(static_cast<void>(solve({.capacities = {1}, .classes = {{{0, 0}}}})), InternalError);
}

TEST(MaxMin, works_after_a_refusal) {
  MaxMin solver({6});
  std::vector<double> rates;
  const std::vector<Crossing> good{{0, 1}};
  const std::vector<Crossing> bad{{0, 1}, {9, 1}};
  const std::vector<std::span<const Crossing>> refused{good, bad};
  EXPECT_THROW(solver.solve(refused, rates), InternalError);
  solver.solve(std::span(refused).first(1), rates);
  EXPECT_THAT(rates, ElementsAre(6));
}

}  // namespace
}  // namespace ulysim::network::testing
