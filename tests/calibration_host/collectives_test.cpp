// Which question this answers: do the collectives move every byte to where it belongs, over shared memory and TCP, with
// messages far above what a queue or a socket holds?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/host/host_backend.h"

namespace ulysim::calibration::host {
namespace {

struct Case {
  const char* name{};
  Fabric fabric{};
  int ranks{};
};

class EveryFabric : public testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static HostOptions options() { return {.ranks = GetParam().ranks, .fabric = GetParam().fabric}; }
};

TEST_P(EveryFabric, EveryCollectiveDeliversWhatItsDefinitionSays) {
  const auto backend = make_host_backend(options());
  for (const Collective collective :
       {Collective::all_to_all, Collective::all_gather, Collective::reduce_scatter, Collective::send_recv}) {
    // One float a block; a size that no piece divides; 12 MiB, above the queue of 1 MiB and any socket buffer.
    for (const std::int64_t floats : {1, 12345, 1 << 20}) {
      const CollectiveProbe probe{.collective = collective, .bytes = floats * GetParam().ranks * 4};
      EXPECT_LE(backend->verify(probe), 1e-6) << static_cast<int>(collective) << " of " << floats << " floats a block";
    }
  }
}

TEST_P(EveryFabric, ARepetitionLastsFromTheFirstStartToTheLastEnd) {
  const auto backend = make_host_backend(options());
  const auto seconds = backend->measure(CopyProbe{.bytes = 4096}, {.warm_up = 1, .timed = 3});
  EXPECT_THAT(seconds, testing::SizeIs(3));
  EXPECT_THAT(seconds, testing::Each(testing::Gt(0.0)));
}

INSTANTIATE_TEST_SUITE_P(Host, EveryFabric,
                         testing::Values(Case{"OneRank", Fabric::shared_memory, 1},
                                         Case{"SharedMemory2", Fabric::shared_memory, 2},
                                         Case{"SharedMemory3", Fabric::shared_memory, 3},
                                         Case{"Tcp2", Fabric::tcp_loopback, 2}, Case{"Tcp3", Fabric::tcp_loopback, 3}),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace ulysim::calibration::host
