// Which question this answers: are tables with named columns read, and is our own CSV read back to the same samples?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/calibration_import/importing.h"

namespace ulysim::calibration {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 17.13 / 8.84 = 1.938, 93.93 / 48.48 = 1.9375 = 2·31/32: an all-reduce over 32. 16 MiB at 48.48 GB/s take 346 us.
TEST(Table, APastedMarkdownTableTellsItsCollectiveAndRanks) {
  const ImportedFile file = import_text(
      "| payload |    busbw   |    algbw   |\n| ------: | ---------: | ---------: |\n"
      "|    1MiB |  17.13GBps |   8.84GBps |\n|   16MiB |  93.93GBps |  48.48GBps |\n"
      "|   16GiB |  91.69GBps |  47.32GBps |\n",
      "f", {});
  EXPECT_EQ(file.collective, "all_reduce");
  EXPECT_EQ(file.ranks, 32);
  EXPECT_THAT(busbw(file, false), ElementsAre(17.13, 93.93, 91.69));
  EXPECT_EQ(run_of(file, 2).bytes, std::int64_t{16} << 30);
  EXPECT_NEAR(file.samples[1].seconds, 346.06e-6, 1e-8);
}

// 2·1000³ FLOP in 1 ms are 2 TFLOP/s; 1 MB among 4 ranks in 10 us is 100 GB/s, times 3/4.
TEST(Table, RowsOfBothKindsStandInOneTable) {
  const ImportedFile file = import_text(
      "kind,collective,ranks,bytes,time_s,precision,m,n,k,gpu,regime\n"
      "gemm,,,,1e-3,bf16,1000,1000,1000,\"H100, 80 GB\",sustained\n"
      "collective,all_to_all,4,1000000,1e-5,,,,,,\n",
      "f", {});
  ASSERT_EQ(file.samples.size(), 2U);
  EXPECT_DOUBLE_EQ(*rate_of(file.samples[0]), 2.0);
  EXPECT_EQ(file.samples[0].gpu, "H100, 80 GB");
  EXPECT_EQ(file.samples[0].regime, Regime::sustained);
  EXPECT_DOUBLE_EQ(*rate_of(file.samples[1]), 75.0);
}

TEST(Table, OurCsvComesBackUnchanged) {
  const std::array<ImportedFile, 1> files{
      import_text("collective,ranks,bytes,time_us,spread,in_place,gpu,source\n"
                  "all_gather,16,1Mi,33.3,0.02,true,\"a \"\"b\"\", c\",x\nreduce_scatter,8,4096,7.1,,false,,\n",
                  "f", {})};
  const std::string csv = to_csv(files);
  const std::array<ImportedFile, 1> again{import_text(csv, "f", {})};
  EXPECT_EQ(to_csv(again), csv);
  EXPECT_EQ(again[0].samples[0].gpu, "a \"b\", c");
  EXPECT_EQ(run_of(again[0], 0).bytes, 1048576);
}

TEST(Table, EveryMistakeIsNamedByItsLine) {
  EXPECT_THAT(refusal("colective,ranks\n"), HasSubstr("f:1:1: error: unknown column 'colective'; did you mean "
                                                      "'collective'?"));
  EXPECT_THAT(refusal("ranks,ranks\n1,2\n"), HasSubstr("column 'ranks' stands twice"));
  const std::string wrong = refusal(
      "collective,ranks,bytes,time_s\nall_reduce,8,1Mi\nall_reduce,1,1Mi,1e-3\ngossip,8,1Mi,1e-3\n"
      "all_reduce,8,-5,1e-3\nall_reduce,8,1Mi,soon\nall_reduce,8,1Mi,\n");
  EXPECT_THAT(wrong, HasSubstr("f:2:1: error: 3 cells instead of 4"));
  EXPECT_THAT(wrong, HasSubstr("f:3:1: error: one rank alone"));
  EXPECT_THAT(wrong, HasSubstr("f:4:1: error: no collective 'gossip'"));
  EXPECT_THAT(wrong, HasSubstr("f:5:1: error: 'bytes': cannot read"));
  EXPECT_THAT(wrong, HasSubstr("f:6:1: error: cannot read 'soon' as 'time_s'"));
  EXPECT_THAT(wrong, HasSubstr("f:7:1: error: a time of 1 ps to 1e12 s, or a bandwidth, is needed"));
  EXPECT_THAT(refusal("m,n,k,precision,time_s\n1,1,1,fp64,1\n"), HasSubstr("unknown precision 'fp64'"));
  EXPECT_THAT(refusal("collective,ranks,bytes,time_s\nall_reduce,8,1Mi,1e-300\n"),
              HasSubstr("f:2:1: error: a time of 1 ps"));
  EXPECT_THAT(refusal("collective,ranks,bytes,time_s\n"), HasSubstr("a table without rows"));
}

}  // namespace
}  // namespace ulysim::calibration
