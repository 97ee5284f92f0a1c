// Which question this answers: does `ulysim calibrate import` keep the contract of its JSON and its exit status?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/document.h"
#include "tests/tools/program.h"

namespace ulysim::tools {
namespace {

using testing::HasSubstr;

// 8 MiB in 100 us is 83.89 GB/s, over two ranks half of that.
const std::string kLog =
    "alltoall_perf\n# Using devices\n#  Rank  0 Pid 1 on h device 0 [0x00] A\n#  Rank  1 Pid 1 on h device 1 [0x01] A\n"
    " 8388608 1048576 float none -1 100.0 83.89 41.94 0 100.0 83.89 41.94 N/A\n";

TEST(CalibrateImport, GivesTheContractsSamples) {
  const Sandbox sandbox;
  const Outcome outcome = sandbox.run({"calibrate", "import", sandbox.write("a.log", kLog), "--json", "-"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr(sandbox.folder().string()))) << "no folders in results";
  const config::Node root = config::parse_json(outcome.out, "result");
  EXPECT_EQ(root.find("format")->text, "ulysim-result");
  ASSERT_EQ(root.find("samples")->items.size(), 2U);
  const config::Node& sample = root.find("samples")->items[0];
  EXPECT_EQ(sample.find("collective")->text, "all_to_all");
  EXPECT_EQ(sample.find("ranks")->text, "2");
  EXPECT_EQ(sample.find("bytes")->text, "8388608");
  EXPECT_EQ(sample.find("time_s")->text, "0.0001");
  EXPECT_EQ(sample.find("bus_bandwidth_gb_s")->text, "41.94");
  EXPECT_EQ(sample.find("in_place")->text, "false");
  EXPECT_EQ(root.find("samples")->items[1].find("in_place")->text, "true");
}

TEST(CalibrateImport, WritesAFolderAndReadsItsCsvAgain) {
  const Sandbox sandbox;
  const std::string out = (sandbox.folder() / "o").string();
  EXPECT_EQ(sandbox.run({"calibrate", "import", sandbox.write("a.log", kLog), "-o", out, "-q"}).status, 0);
  const Outcome again = sandbox.run({"calibrate", "import", out + "/samples.csv", "--csv", "-"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, content_of(out + "/samples.csv"));
  EXPECT_NE(content_of(out + "/samples.json"), "");
}

TEST(CalibrateImport, EveryRefusedFileIsNamedAndNothingIsWritten) {
  const Sandbox sandbox;
  const std::string good = sandbox.write("good.log", kLog);
  const std::string bad = sandbox.write("bad.log", "hello\n");
  const std::string missing = (sandbox.folder() / "missing.log").string();
  const Outcome outcome = sandbox.run({"calibrate", "import", good, bad, missing, "--json", "-"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(bad + ":1:1: error: no complete row"));
  EXPECT_THAT(outcome.err, HasSubstr(missing + ": error: there is no such file"));
}

TEST(CalibrateImport, WhatMakesNoSenseIsStatus2) {
  const Sandbox sandbox;
  const std::string log = sandbox.write("a.log", kLog);
  const std::vector<std::vector<std::string>> wrong{{"calibrate", "import"},
                                                    {"calibrate", "import", log, "--ranks", "1"},
                                                    {"calibrate", "import", log, "--ranks", "many"},
                                                    {"calibrate", "import", log, "--collective", "gossip"},
                                                    {"calibrate", "import", log, "--json", "-", "--csv", "-"},
                                                    {"calibrate", "import", sandbox.folder().string()},
                                                    {"calibrate", "show", "h100-sxm", "--json", "-"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = sandbox.run(arguments);
    EXPECT_EQ(outcome.status, 2) << testing::PrintToString(arguments);
    EXPECT_NE(outcome.err, "") << testing::PrintToString(arguments);
  }
}

}  // namespace
}  // namespace ulysim::tools
