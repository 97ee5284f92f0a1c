// Does the hot path leave the heap alone?
#include <gtest/gtest.h>

#include "sim/network/flow_network.h"
#include "tests/network/count_allocations.h"

namespace ulysim::network::testing {
namespace {

using Handle = FlowNetwork::Handle;

TEST(FlowNetwork, allocates_nothing_once_warm) {
  const std::vector<Crossing> link0{{0, 1}};
  const std::vector<Crossing> link1{{1, 1}};
  const std::vector<Crossing> both{{0, 1}, {1, 1}};
  FlowNetwork network({5e9, 3e9});
  std::vector<Handle> completed;
  completed.reserve(64);
  const auto round = [&] {
    for (int i = 0; i < 8; ++i) {
      network.start(link0, 1000 + i);
      network.start(link1, 1000 + 7 * i);
      network.start(both, 1000 + 3 * i);
    }
    while (const auto next = network.next_completion()) {
      completed.clear();
      network.advance(*next, completed);
    }
  };
  round();
  const std::size_t before = allocations();
  round();
  const std::size_t after = allocations();
  EXPECT_GT(before, 0U);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace ulysim::network::testing
