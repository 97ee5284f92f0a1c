// Which question this answers: do processes that a launcher started find each other, and does a killed run keep what it
// measured?

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "calibration/cuda/ranks.h"
#include "calibration/cuda/sample_file.h"
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

class Samples : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  [[nodiscard]] std::string text() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path path_{std::filesystem::path(testing::TempDir()) / "ulysim_launch_test.csv"};
  MeasuredSample first_{
      .kind = "copy", .shape = "bytes=1024", .where = "GPU x1", .median_s = 2e-6, .spread = 0.01, .provenance = "here"};
};

TEST_F(Samples, AreOnDiskAtOnceAndNotMeasuredAgain) {
  SampleFile file(path_, Existing::refuse);
  file.append(first_);
  EXPECT_EQ(text(), std::string(sample_header()) + "\ncopy,bytes=1024,GPU x1,2.000000e-06,0.0100,here\n");
  MeasuredSample second = first_;
  second.shape = "bytes=2048";
  SampleFile resumed(path_, Existing::resume);
  EXPECT_TRUE(resumed.has(first_));
  EXPECT_FALSE(resumed.has(second));
}

TEST_F(Samples, ATornLineIsDropped) {
  const std::string whole = std::string(sample_header()) + "\ncopy,bytes=1024,GPU x1,2.000000e-06,0.0100,here\n";
  std::ofstream(path_) << whole << "copy,bytes=20";
  SampleFile file(path_, Existing::resume);
  EXPECT_EQ(text(), whole);
}

TEST_F(Samples, AFileIsNeverWrittenOver) {
  std::ofstream(path_) << "my,notes\n";
  EXPECT_THROW(SampleFile(path_, Existing::refuse), InputError);
  EXPECT_THROW(SampleFile(path_, Existing::resume), InputError);
  EXPECT_EQ(text(), "my,notes\n");
}

}  // namespace
}  // namespace ulysim::calibration::cuda
