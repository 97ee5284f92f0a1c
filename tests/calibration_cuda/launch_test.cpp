// Which question this answers: do processes that a launcher started find each other?

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

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

TEST(Rendezvous, EveryRankGetsWhatRankZeroHas) {
  const MeetingPoint where{.port = free_port(), .patience = std::chrono::seconds(20)};
  std::vector<std::vector<std::byte>> got(4);
  std::vector<std::thread> ranks;
  for (int rank : {3, 1, 0, 2}) {
    ranks.emplace_back([&got, &where, rank] {
      got[static_cast<std::size_t>(rank)] =
          share_from_rank_zero({.rank = rank, .world = 4}, where, rank == 0 ? bytes(128) : std::vector<std::byte>{});
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  EXPECT_THAT(got, testing::Each(bytes(128)));
}

TEST(Rendezvous, WhoWaitsInVainSaysForWhom) {
  const MeetingPoint where{.port = free_port(), .patience = std::chrono::milliseconds(200)};
  EXPECT_THAT([&] { static_cast<void>(share_from_rank_zero({.rank = 0, .world = 3}, where, bytes(4))); },
              ThrowsMessage<WorldError>(HasSubstr("2 of 3 ranks did not come")));
  EXPECT_THAT([&] { static_cast<void>(share_from_rank_zero({.rank = 1, .world = 3}, where, {})); },
              ThrowsMessage<WorldError>(HasSubstr("found no rank 0")));
}

}  // namespace
}  // namespace ulysim::calibration::cuda
