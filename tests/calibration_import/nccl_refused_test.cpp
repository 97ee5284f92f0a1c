// Which question this answers: is a log that must not be used refused, with the line and the reason?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/calibration_import/importing.h"

namespace ulysim::calibration {
namespace {

using testing::HasSubstr;

const std::string kHeader =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n";
// 8 MiB in 100 us is 83.89 GB/s.
const std::string kTwoRanks =
    "# Using devices\n#  Rank  0 Group  0 Pid 1 on h device 0 [0x00] A\n#  Rank  1 Group  0 Pid 1 on h device 1 [0x01] "
    "A\n";

TEST(Refused, RunsOfOneRankPrintedOverEachOther) {
  EXPECT_THAT(refusal("# Using devices\n# nThread 1 nGpus 1\n# Using devices\n"
                      "#   Rank  0 Pid  50000 on host-b device  0 [0x00] Tesla V100-SXM2-16GB\n"
                      "#   Rank  0 Pid  50001 on host-a device  0 [0x00] Tesla V100-SXM2-16GB\n" +
                      kHeader),
              HasSubstr("f:5:1: error: rank 0 stands here a second time"));
}

TEST(Refused, ARunOfOneRank) {
  EXPECT_THAT(refusal("./all_reduce_perf\n# Using devices\n#  Rank  0 Pid 1 on h device 0 [0x00] A\n" + kHeader +
                      " 8388608 2097152 float sum -1 100.0 83.89 0.00 0 100.0 83.89 0.00 0\n"),
              HasSubstr("one rank alone communicates with nobody"));
}

TEST(Refused, WrongResults) {
  EXPECT_THAT(refusal(kTwoRanks + kHeader + " 8388608 2097152 float sum -1 100.0 83.89 83.89 7 100.0 83.89 83.89 0\n"),
              HasSubstr("f:5:1: error: the collective gave wrong results (7)"));
}

TEST(Refused, TimesOfTheCpu) {
  EXPECT_THAT(refusal(kTwoRanks + "# size count type redop root cputime algbw busbw #wrong cputime algbw busbw #wrong\n"
                                  " 8388608 2097152 float sum -1 100.0 83.89 83.89 0 100.0 83.89 83.89 0\n"),
              HasSubstr("f:4:1: error: the times are of the CPU's call"));
}

// Without a check, an all-gather and an all-to-all look the same: asked for, and then believed.
TEST(Refused, WhatTwoCollectivesMayHavePrinted) {
  const std::string unchecked =
      kTwoRanks + kHeader + " 8388608 1048576 float none -1 100.0 83.89 41.94 N/A 100.0 83.89 41.94 N/A\n";
  EXPECT_THAT(refusal(unchecked), HasSubstr("say --collective NAME"));
  EXPECT_EQ(import_text(unchecked, "f", {.collective = "alltoall"}).collective, "all_to_all");
  EXPECT_EQ(import_text(unchecked, "f", {.collective = "all_gather"}).collective, "all_gather");
  EXPECT_THAT(refusal(unchecked, {.collective = "gossip"}), HasSubstr("no collective 'gossip'; known: all_reduce"));
}

// An all-reduce of small messages prints too few digits to tell its ranks: 0.02 over 0.01 is anything.
TEST(Refused, AnAllReduceThatLeavesItsRanksOpen) {
  const std::string small =
      "./build/all_reduce_perf -b 1K\n" + kHeader + " 1024 256 float sum -1 50.00 0.02 0.04 0 50.00 0.02 0.04 0\n";
  EXPECT_THAT(refusal(small),
              HasSubstr("f:3:1: error: the file does not tell how many ranks took part; say --ranks N"));
  EXPECT_EQ(import_text(small, "f", {.ranks = 8}).ranks, 8);
}

TEST(Refused, AHintAgainstTheFile) {
  const std::string text = "./all_reduce_perf\n" + kTwoRanks + kHeader +
                           " 8388608 2097152 float sum -1 100.0 83.89 83.89 0 100.0 83.89 83.89 0\n";
  EXPECT_THAT(refusal(text, {.ranks = 8}), HasSubstr("2 ranks by the list of devices, 8 by --ranks"));
  EXPECT_THAT(refusal(text, {.collective = "all_gather"}), HasSubstr("this is all_reduce, not all_gather"));
}

// Named an all-to-all over two, 83.89 GB/s would have to be 41.94.
TEST(Refused, BandwidthsThatDoNotFollowFromTheTimes) {
  EXPECT_THAT(refusal("alltoall_perf\n" + kTwoRanks + kHeader +
                      " 8388608 1048576 float none -1 100.0 83.89 83.89 0 100.0 83.89 41.94 N/A\n"),
              HasSubstr("f:6:1: error: busbw 83.89 GB/s does not follow from 8388608 B in 100 us (that is 41.94)"));
}

TEST(Refused, WhatIsNothingThatIsKnown) {
  EXPECT_THAT(refusal(""), HasSubstr("f:1:1: error: the file is empty"));
  EXPECT_THAT(refusal("hello\nworld\n"), HasSubstr("f:1:1: error: no complete row of nccl-tests in it"));
  EXPECT_THAT(refusal("\x1f\x8b\x08"), HasSubstr("gzip"));
  EXPECT_THAT(refusal(std::string(1000, '\0')), HasSubstr("f:1:1"));
  EXPECT_THAT(refusal("nan inf -1 0x10\n 8388608 1 float none -1 nan inf 1 0 1 1 1 0\n"), HasSubstr("f:1:1"));
}

}  // namespace
}  // namespace ulysim::calibration
