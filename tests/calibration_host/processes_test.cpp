// Which question this answers: does a rank that dies end the run with one sentence, leaving nothing behind, and does a
// network that is not permitted say so?

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "calibration/host/host_backend.h"
#include "sim/base/check.h"

namespace ulysim::calibration::host {
namespace {

using testing::HasSubstr;

TEST(Processes, AKilledRankIsNamedWhileTheOthersWaitForIt) {
  RankProcesses processes({.ranks = 2});
  ASSERT_EQ(kill(processes.pid(1), SIGKILL), 0);
  EXPECT_THAT(
      [&] {
        (void)processes.ask({.probe = CollectiveProbe{.bytes = 4096}, .repetitions = {.warm_up = 1, .timed = 1}});
      },
      testing::ThrowsMessage<WorldError>("rank 1 was killed by signal 9"));
}

TEST(Processes, RanksEndWithTheirOwner) {
  int pid = 0;
  {
    RankProcesses processes({.ranks = 2});
    pid = processes.pid(0);
    ASSERT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(Processes, ACableBetweenNamespacesCarriesTheCollectives) {
  try {
    const auto backend = make_host_backend({.ranks = 2, .fabric = Fabric::tcp_namespaces, .rate = "1gbit"});
    EXPECT_EQ(backend->fabric(), "tcp-1gbit");
    EXPECT_LE(backend->verify(CollectiveProbe{.collective = Collective::all_to_all, .bytes = 1 << 20}), 1e-6);
    // 4 MiB each way through a bucket of 125 MB/s: no less than 33 ms, whatever else the machine does.
    const auto seconds = backend->measure(CollectiveProbe{.collective = Collective::send_recv, .bytes = 4 << 20},
                                          {.warm_up = 1, .timed = 1});
    EXPECT_GT(seconds.at(0), 0.030);
  } catch (const WorldError& error) {
    GTEST_SKIP() << error.what();
  }
}

TEST(Processes, ACableHasTwoEnds) {
  EXPECT_THAT([] { RankProcesses({.ranks = 3, .fabric = Fabric::tcp_namespaces}); },
              testing::ThrowsMessage<WorldError>(HasSubstr("2 ranks, not 3")));
}

}  // namespace
}  // namespace ulysim::calibration::host
