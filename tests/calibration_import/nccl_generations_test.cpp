// Which question this answers: is every generation of nccl-tests' text read to the figures that it prints?
// The figures are those of logs in public issues of NVIDIA/nccl and NVIDIA/nccl-tests.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/calibration_import/importing.h"

namespace ulysim::calibration {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string devices(int ranks, const std::string& gpu) {
  std::string out = "# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank) {
    out += fmt::format("#  Rank {:2} Group  0 Pid  {} on    host-a device {:2} [0x{:02x}] {}\n", rank, 100 + rank, rank,
                       rank, gpu);
  }
  return out;
}

const std::string kWrongHeader =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
const std::string kErrorHeader =
    "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n";

// Generation with "#wrong" and a root. The collective is not named: count = size/4/8, no reduction, N/A in place.
TEST(NcclText, AnAllToAllIsKnownByWhatIsNotChecked) {
  const ImportedFile file = import_text(devices(8, "NVIDIA H20-3e") + kWrongHeader +
                                            " 1048576 32768 float none -1  58.14 18.04 15.78 0  57.87 18.12 15.85 N/A\n"
                                            " 2097152 65536 float none -1  58.94 35.58 31.14 0  58.10 36.10 31.58 N/A\n"
                                            " 4194304 131072 float none -1 59.35 70.67 61.84 0  59.23 70.81 61.96 N/A\n"
                                            " 8388608\n",
                                        "f", {});
  EXPECT_EQ(file.collective, "all_to_all");
  EXPECT_EQ(file.ranks, 8);
  EXPECT_EQ(file.ranks_from, "the list of devices");
  EXPECT_EQ(file.gpu, "H20-3e");
  EXPECT_EQ(file.rows, 3);
  EXPECT_TRUE(file.truncated);
  EXPECT_THAT(busbw(file, false), ElementsAre(15.78, 31.14, 61.84));
  EXPECT_THAT(busbw(file, true), ElementsAre(15.85, 31.58, 61.96));
  EXPECT_EQ(run_of(file, 0).bytes, 1048576);
  EXPECT_EQ(file.samples[0].ranks, 8);
  EXPECT_DOUBLE_EQ(file.samples[0].seconds, 58.14e-6);
}

// Before 2022: "error" instead of "#wrong", an empty redop column, no root. In place an all-to-all errs by 1, which is
// no failure. 268435456 / 4 / 1048576 = 64 ranks.
TEST(NcclText, AnErrorOfOneInPlaceIsHowOldAllToAllsLook) {
  const ImportedFile file = import_text(kErrorHeader +
                                            "   268435456       1048576     float           520935    0.52    0.51  "
                                            "0e+00   519562    0.52    0.51  1e+00\n"
                                            "   536870912       2097152     float          1041974    0.52    0.51  "
                                            "0e+00  1041299    0.52    0.51  1e+00\n"
                                            "# Out of bounds values : 0 OK\n",
                                        "f", {});
  EXPECT_EQ(file.collective, "all_to_all");
  EXPECT_EQ(file.ranks, 64);
  EXPECT_THAT(busbw(file, false), ElementsAre(0.51, 0.51));
  EXPECT_FALSE(file.truncated);
}

// -c 0 of the oldest generation, without a list of devices. 2(n−1)/n: 71.55 over 1073741824 B / 29896 us = 35.916 is
// 1.99215 ± 0.00017, so n is 249 to 260; the other rows leave 252 to 256, and machines come in powers of two.
TEST(NcclText, TheRanksOfAnAllReduceFollowFromItsTwoBandwidths) {
  const ImportedFile file = import_text(
      "NCCL version 2.8.4+cuda10.1\n" + kErrorHeader +
          "    33554432       8388608   float     sum   1464.2   22.92   45.65    N/A   1458.1   23.01   45.84    N/A\n"
          "    67108864      16777216   float     sum   2659.1   25.24   50.28    N/A   3014.6   22.26   44.35    N/A\n"
          "   134217728      33554432   float     sum   4263.8   31.48   62.71    N/A   4647.4   28.88   57.53    N/A\n"
          "   268435456      67108864   float     sum   7946.8   33.78   67.29    N/A   7615.2   35.25   70.22    N/A\n"
          "   536870912     134217728   float     sum    16129   33.29   66.31    N/A    14383   37.33   74.36    N/A\n"
          "  1073741824     268435456   float     sum    29896   35.92   71.55    N/A    29411   36.51   72.73    "
          "N/A\n",
      "f", {});
  EXPECT_EQ(file.collective, "all_reduce");
  EXPECT_EQ(file.ranks, 256);
  EXPECT_EQ(file.ranks_from, "busbw over algbw, which allows 252 to 256");
  EXPECT_THAT(busbw(file, false), ElementsAre(45.65, 50.28, 62.71, 67.29, 66.31, 71.55));
}

// A row is printed in three flushes, so a launcher's tag may also stand within it. No header: 2048 / 4 / 32 = 16.
TEST(NcclText, LaunchersTagsAreTakenOff) {
  const ImportedFile tagged = import_text(
      "[1,0]<stdout>:  262144  4096 float none -1 [1,0]<stdout>: 161.17 1.63 1.52 0 151.94 1.73 1.62 N/A\n"
      "2026-07-09T10:11:12Z 0:  524288 8192 float none -1 212.76 2.46 2.31 0 223.82 2.34 2.20 N/A\n"
      "[0] 2048 32 float none -1 106.88 0.02 0.02 0 0: 111.25 0.02 0.02 N/A\n",
      "f", {});
  EXPECT_EQ(tagged.collective, "all_to_all");
  EXPECT_EQ(tagged.ranks, 16);
  EXPECT_THAT(busbw(tagged, false), ElementsAre(1.52, 2.31, 0.02));
}

// The operation says "sum", which a send/recv does not do; what tells is that its results are not checked in place.
TEST(NcclText, ASendRecvIsKnownByEqualBandwidths) {
  const ImportedFile file = import_text(devices(2, "NVIDIA A40") + kWrongHeader +
                                            " 2048  512 float sum -1  31.58 0.06 0.06 0  31.33 0.07 0.07 N/A\n"
                                            " 4096 1024 float sum -1  30.74 0.13 0.13 0  30.69 0.13 0.13 N/A\n"
                                            " 8192 2048 float sum -1  31.76 0.26 0.26 0  31.59 0.26 0.",
                                        "f", {});
  EXPECT_EQ(file.collective, "send_recv");
  EXPECT_EQ(file.ranks, 2);
  EXPECT_EQ(file.rows, 2) << "the last row is cut off within its last bandwidth";
  EXPECT_TRUE(file.truncated);
}

TEST(NcclText, RowsOfNoBytesAreSkipped) {
  const ImportedFile file = import_text(kWrongHeader +
                                            "   0  0 float sum -1  5.70 0.00 0.00 0   5.54 0.00 0.00 0\n"
                                            "   0  0 float sum -1  5.92 0.00 0.00 0   5.51 0.00 0.00 0\n"
                                            " 128  4 float sum -1 32.31 0.00 0.00 0  25.35 0.01 0.00 0\n"
                                            " 256  8 float sum -1 24.01 0.01 0.01 0  23.18 0.01 0.01 0\n"
                                            " 512 16 float sum -1  23.99\n",
                                        "f", {});
  EXPECT_EQ(file.collective, "reduce_scatter");
  EXPECT_EQ(file.ranks, 8) << "256 / 4 / 8";
  EXPECT_EQ(file.zero_size_rows, 2);
  EXPECT_EQ(file.rows, 2);
}

// No header, no operation, valid in place; an error of 2e-07 is what float arithmetic leaves.
TEST(NcclText, AnAllGatherIsValidInPlace) {
  const ImportedFile file = import_text(
      "       65536          2048     float    52.01    1.26    1.10  0e+00    50.09    1.31    1.14  0e+00\n"
      "   268435456       8388608     float    32071    8.37    7.32  2e-07    32081    8.37    7.32  0e+00\n"
      "   536870912      16777216     floa",
      "f", {});
  EXPECT_EQ(file.collective, "all_gather");
  EXPECT_EQ(file.ranks, 8);
  EXPECT_THAT(busbw(file, false), ElementsAre(1.10, 7.32));
  EXPECT_TRUE(file.truncated);
}

// Before June 2020 an all-gather's algbw already held the factor: busbw is the one to use. 1 GB in 10 ms is 107.37
// GB/s; over 8 ranks busbw is 93.95.
TEST(NcclText, OldAllGathersPrintTheSameBandwidthTwice) {
  const ImportedFile file = import_text(
      kErrorHeader + " 1073741824 33554432 float 10000 93.95 93.95 0e+00 10000 93.95 93.95 0e+00\n", "f", {});
  EXPECT_EQ(file.collective, "all_gather");
  EXPECT_EQ(file.ranks, 8);
  EXPECT_THAT(busbw(file, false), ElementsAre(93.95));
}

// From 2.17 the program is named, PCI addresses are long; from 2.19 -I adds four columns a half and -S a time stamp.
// 16 MiB in 100 us is 167.77 GB/s; times 2·3/4 is 251.66.
TEST(NcclText, TheNewestGenerationNamesItselfAndMaySpread) {
  const ImportedFile file = import_text(
      "# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n"
      "# Collective test starting: all_reduce_perf\n"
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid 1 on host-a device  0 [0000:03:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Group  0 Pid 1 on host-a device  1 [0000:04:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  2 Group  0 Pid 1 on host-a device  2 [0000:05:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  3 Group  0 Pid 1 on host-a device  3 [0000:06:00] NVIDIA H100 80GB HBM3\n"
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min "
      "i_max "
      "i_p99 i_cv% timestamp\n"
      " 16777216 4194304 float sum -1 100.0 167.77 251.66 0 98.00 104.0 103.0 1.50"
      " 101.0 166.11 249.17 0 98.00 104.0 103.0 2.00  2026-07-09 10:11:12\n"
      "# Collective test concluded: all_reduce_perf\n",
      "f", {});
  EXPECT_EQ(file.collective, "all_reduce");
  EXPECT_EQ(file.collective_from, "the program's name");
  EXPECT_EQ(file.ranks, 4);
  EXPECT_EQ(file.gpu, "H100 80GB HBM3");
  ASSERT_EQ(file.samples.size(), 2U);
  EXPECT_DOUBLE_EQ(*file.samples[0].spread, 0.015);
  EXPECT_THAT(busbw(file, true), ElementsAre(249.17));
}

// Groups run at once, each by itself: a rank's group is what counts. 8 MiB in 100 us is 83.89; times 3/4 is 62.91.
TEST(NcclText, ASplitRunIsOfItsGroup) {
  std::string text = "./build/all_gather_perf -b 8M\n# Using devices\n";
  for (int rank = 0; rank < 8; ++rank) {
    text += fmt::format("#  Rank {} Group {} Pid 1 on host device {} [0x00] NVIDIA L40S\n", rank, rank / 4, rank);
  }
  const ImportedFile file = import_text(
      text + kWrongHeader + " 8388608 524288 float none -1 100.0 83.89 62.91 0 100.0 83.89 62.91 0\n", "f", {});
  EXPECT_EQ(file.ranks, 4);
  EXPECT_EQ(file.collective, "all_gather");
}

// Two programs in one log, as loops over them write.
TEST(NcclText, ALogMayHoldSeveralRuns) {
  const std::string first = "# Collective test starting: alltoall_perf\n" + devices(2, "A") + kWrongHeader +
                            " 8388608 1048576 float none -1 100.0 83.89 41.94 0 100.0 83.89 41.94 N/A\n";
  const std::string second = "# Collective test starting: all_reduce_perf\n" + devices(2, "A") + kWrongHeader +
                             " 8388608 2097152 float sum -1 100.0 83.89 83.89 0 100.0 83.89 83.89 0\n";
  const ImportedFile file = import_text(first + second, "f", {});
  ASSERT_EQ(file.samples.size(), 4U);
  EXPECT_EQ(run_of(file, 0).collective, Collective::all_to_all);
  EXPECT_EQ(run_of(file, 2).collective, Collective::all_reduce);
  EXPECT_EQ(file.collective, "several");
}

TEST(NcclText, ARowTornByOtherOutputIsSkippedAndSaid) {
  const ImportedFile file = import_text(devices(2, "A") + kWrongHeader +
                                            " 4194304 524288 float none -1 100.0 host-a:7 NCCL INFO Channel 00\n"
                                            " 8388608 1048576 float none -1 100.0 83.89 41.94 0 100.0 83.89 41.94 N/A\n"
                                            "# Out of bounds values : 0 OK\n",
                                        "f", {});
  EXPECT_EQ(file.rows, 1);
  EXPECT_FALSE(file.truncated);
  EXPECT_THAT(file.notes, ElementsAre(HasSubstr("1 incomplete rows between others, skipped (about line 6)")));
}

TEST(NcclJson, TheReportOfJGivesTheSameSamples) {
  const ImportedFile file = import_text(
      R"({"version":2,"args":["/opt/alltoall_perf","-J","x"],"env":["A=b"],"nccl_version":22809,
"config":{"nthreads":1,"devices":[
 {"rank":0,"group":0,"pid":1,"hostname":"h","device":0,"device_hex":"0000:03:00","device_info":"NVIDIA H20-3e"},
 {"rank":1,"group":0,"pid":1,"hostname":"h","device":1,"device_hex":"0000:04:00","device_info":"NVIDIA H20-3e"}]},
"results":[{"size":0,"count":0,"type":"float","redop":"none","root":"    -1",
  "out_of_place":{"time":5.0,"alg_bw":0.0,"bus_bw":0.0,"nwrong":0.0},"in_place":null},
 {"size":8388608,"count":1048576,"type":"float","redop":"none","root":"    -1",
  "out_of_place":{"time":100.000000,"alg_bw":83.886080,"bus_bw":41.943040,"nwrong":0.000000},
  "out_of_place_per_iter":{"cv_pct":2.000000},
  "in_place":{"time":100.000000,"alg_bw":83.886080,"bus_bw":41.943040,"nwrong":null}}]})",
      "f", {});
  EXPECT_EQ(file.format, "nccl-tests JSON");
  EXPECT_EQ(file.collective, "all_to_all");
  EXPECT_EQ(file.ranks, 2);
  EXPECT_EQ(file.gpu, "H20-3e");
  EXPECT_EQ(file.zero_size_rows, 1);
  EXPECT_THAT(busbw(file, false), ElementsAre(41.94304));
  EXPECT_DOUBLE_EQ(*file.samples[0].spread, 0.02);
}

}  // namespace
}  // namespace ulysim::calibration
