// Which question this answers: do processes that a launcher started find each other?

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <optional>
#include <thread>

#include "calibration/cuda/ranks.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration::cuda {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Ranks, EveryLauncherIsUnderstood) {
  const RankPlace third{.rank = 3, .world = 8, .local_rank = 1};
  EXPECT_EQ(rank_place({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}), third);
  EXPECT_EQ(rank_place({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}}), third);
  EXPECT_EQ(
      rank_place({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}),
      third);
  EXPECT_EQ(rank_place({{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}}), third);
  EXPECT_EQ(rank_place({}), RankPlace{});
}

TEST(Ranks, TorchrunInsideOfSlurmCounts) {
  EXPECT_EQ(rank_place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"RANK", "5"}, {"WORLD_SIZE", "8"}}).rank, 5);
}

TEST(Ranks, AHalfSetEnvironmentIsRefused) {
  EXPECT_THROW(static_cast<void>(rank_place({{"RANK", "0"}})), InputError);
  EXPECT_THROW(static_cast<void>(rank_place({{"RANK", "8"}, {"WORLD_SIZE", "8"}})), InputError);
  EXPECT_THROW(static_cast<void>(rank_place({{"RANK", "one"}, {"WORLD_SIZE", "8"}})), InputError);
}

TEST(Ranks, MeetBesideTorchrunsOwnPort) {
  EXPECT_EQ(meeting_point({{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}}).port, "29501");
  EXPECT_EQ(meeting_point({{"MASTER_ADDR", "node7"}}).host, "node7");
  EXPECT_THROW(static_cast<void>(meeting_point({{"MASTER_PORT", "65535"}})), InputError);
}

std::vector<std::byte> bytes(std::size_t count) {
  std::vector<std::byte> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = static_cast<std::byte>(i * 7 % 251);
  }
  return result;
}

// Tests of several builds may run at once.
std::string free_port() {
  constexpr int kFirst = 20000;
  constexpr int kCount = 10000;
  return std::to_string(kFirst + getpid() % kCount);
}

/// Ranks of this process, as they stand after they met; some may be gone. `missed` is what each says of the others.
struct Ranks {
  explicit Ranks(int world) : missed(static_cast<std::size_t>(world)), company(static_cast<std::size_t>(world)) {
    const MeetingPoint where{.port = free_port(), .patience = std::chrono::seconds(20)};
    std::vector<std::jthread> threads;
    for (int rank = world - 1; rank >= 0; --rank) {
      threads.emplace_back([this, &where, world, rank] {
        company[static_cast<std::size_t>(rank)].emplace(RankPlace{.rank = rank, .world = world}, where,
                                                        rank == 0 ? bytes(128) : std::vector<std::byte>{});
      });
    }
  }
  void watch() {
    for (std::size_t rank = 0; rank < company.size(); ++rank) {
      company[rank]->watch([&promise = missed[rank]](const std::string& who) { promise.set_value(who); });
    }
  }
  /// Empty if nobody is missed for `patience`.
  [[nodiscard]] std::string missed_by(std::size_t rank, std::chrono::milliseconds patience) {
    std::future<std::string> told = missed[rank].get_future();
    return told.wait_for(patience) == std::future_status::ready ? told.get() : "";
  }

  std::vector<std::promise<std::string>> missed;  ///< before those that watch: it outlives them
  std::vector<std::optional<Company>> company;
};

TEST(Rendezvous, EveryRankGetsWhatRankZeroHas) {
  const Ranks ranks(4);
  for (const auto& rank : ranks.company) {
    EXPECT_EQ(rank->bytes(), bytes(128));
  }
}

TEST(Rendezvous, ARankThatEndsWithoutGoodbyeIsMissedByRankZero) {
  Ranks ranks(3);
  ranks.watch();
  ranks.company[2].reset();
  EXPECT_EQ(ranks.missed_by(0, std::chrono::seconds(20)), "rank 2 is gone before the work was done");
  // Rank 0 then ends itself, and so the last one hears of it.
  ranks.company[0].reset();
  EXPECT_EQ(ranks.missed_by(1, std::chrono::seconds(20)), "rank 0 is gone before the work was done");
}

TEST(Rendezvous, WhoSaysGoodbyeIsNotMissed) {
  Ranks ranks(3);
  ranks.watch();
  for (const std::size_t rank : {1U, 0U, 2U}) {
    ranks.company[rank]->leave();
    ranks.company[rank].reset();
  }
  // Nobody watches any more: what is not told by now will never be.
  for (const std::size_t rank : {0U, 1U, 2U}) {
    EXPECT_EQ(ranks.missed_by(rank, std::chrono::milliseconds(0)), "");
  }
}

TEST(Rendezvous, ARankThatIsAloneMissesNobody) {
  Company alone({}, {}, bytes(3));
  alone.watch([](const std::string& who) { FAIL() << who; });
  alone.leave();
  EXPECT_EQ(alone.bytes(), bytes(3));
}

TEST(Rendezvous, WhoWaitsInVainSaysForWhom) {
  const MeetingPoint where{.port = free_port(), .patience = std::chrono::milliseconds(200)};
  EXPECT_THAT([&] { Company({.rank = 0, .world = 3}, where, bytes(4)); },
              ThrowsMessage<WorldError>(HasSubstr("2 of 3 ranks did not come")));
  EXPECT_THAT([&] { Company({.rank = 1, .world = 3}, where, {}); },
              ThrowsMessage<WorldError>(HasSubstr("found no rank 0")));
}

}  // namespace
}  // namespace ulysim::calibration::cuda
