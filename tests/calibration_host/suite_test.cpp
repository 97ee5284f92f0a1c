// Which question this answers: does the suite time nothing before it is right, keep what is known when it is
// interrupted, and read back what it wrote? A made-up backend answers, so every number is known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "calibration/suite/probe_text.h"
#include "calibration/suite/statistics.h"
#include "calibration/suite/suite.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

/// Every repetition takes `seconds`; counts what it is asked for.
class MadeUp final : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "made-up"; }
  [[nodiscard]] int ranks() const override { return 2; }
  [[nodiscard]] std::string fabric() const override { return "thread"; }
  [[nodiscard]] std::string machine() const override { return "paper"; }
  [[nodiscard]] double verify(const Probe&) override { return error; }
  [[nodiscard]] std::vector<double> measure(const Probe& probe, Repetitions repetitions) override {
    if (kind_of(probe) == fails_at) {
      throw WorldError("rank 1 was killed by signal 9");
    }
    ++measured;
    return std::vector<double>(static_cast<std::size_t>(repetitions.timed), seconds);
  }

  double error{1e-7};
  double seconds{0.01};
  std::string fails_at{};
  int measured{};
};

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Suite : public testing::Test {
 protected:
  Suite() : file_(std::filesystem::path(testing::TempDir()) / (test_name() + ".csv")) {
    std::filesystem::remove(file_);
  }
  ~Suite() override { std::filesystem::remove(file_); }
  static std::string test_name() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }

  std::filesystem::path file_;
  Plan plan_{.check = {CopyProbe{.bytes = 16}},
             .measure = {GemmProbe{.m = 1, .n = 2, .k = 3}, CopyProbe{.bytes = 64},
                         CollectiveProbe{.collective = Collective::all_to_all, .bytes = 8}}};
};

TEST_F(Suite, RowsSayWhatWasMeasuredAndWhere) {
  MadeUp backend;
  (void)run_suite(backend, plan_, {.file = file_});
  // 0.2 s of 10 ms are 20 repetitions.
  EXPECT_EQ(text_of(file_),
            "kind,shape,ranks,fabric,seconds,spread,repetitions,source\n"
            "gemm,m=1 n=2 k=3,2,thread,0.01,0.0000,20,made-up backend on paper\n"
            "copy,bytes=64,2,thread,0.01,0.0000,20,made-up backend on paper\n"
            "all-to-all,bytes=8,2,thread,0.01,0.0000,20,made-up backend on paper\n");
}

TEST_F(Suite, AWrongResultIsNeverTimed) {
  MadeUp backend;
  for (const double error : {1e-3, std::numeric_limits<double>::quiet_NaN()}) {
    backend.error = error;
    std::filesystem::remove(file_);
    EXPECT_THAT([&] { (void)run_suite(backend, plan_, {.file = file_}); },
                testing::ThrowsMessage<WorldError>(HasSubstr("copy bytes=16 wrong")));
  }
  EXPECT_EQ(backend.measured, 0);
}

TEST_F(Suite, WhatWasMeasuredBeforeARankDiedIsKeptAndNotMeasuredAgain) {
  MadeUp backend;
  backend.fails_at = "all-to-all";
  EXPECT_THAT([&] { (void)run_suite(backend, plan_, {.file = file_}); },
              testing::ThrowsMessage<WorldError>("rank 1 was killed by signal 9"));
  EXPECT_THAT(load_probe_samples(file_), SizeIs(2));
  // The interruption also tore a line.
  std::ofstream(file_, std::ios::app) << "all-to-all,bytes=8,2,thr";
  MadeUp again;
  again.seconds = 0.02;
  const auto samples = run_suite(again, plan_, {.file = file_, .existing = Existing::resume});
  // One probe is left: a trial run and one measurement.
  EXPECT_EQ(again.measured, 2);
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_THAT((std::vector<double>{samples[0].seconds, samples[1].seconds, samples[2].seconds}),
              ElementsAre(0.01, 0.01, 0.02));
  EXPECT_THAT(load_probe_samples(file_), SizeIs(3));
}

TEST_F(Suite, AnExistingFileIsNotTouchedUnasked) {
  std::ofstream(file_) << "precious\n";
  MadeUp backend;
  EXPECT_THROW((void)run_suite(backend, plan_, {.file = file_}), InputError);
  EXPECT_EQ(text_of(file_), "precious\n");
}

TEST(ProbeText, ReadsBackEveryProbeOfThePlans) {
  for (const int ranks : {1, 2, 4}) {
    for (const Probe& probe : standard_plan(SuiteSize::standard, ranks).measure) {
      const auto again = probe_of(kind_of(probe), shape_of(probe));
      ASSERT_TRUE(again) << kind_of(probe) << " " << shape_of(probe);
      EXPECT_EQ(key_of(*again, ranks, ""), key_of(probe, ranks, ""));
    }
  }
}

TEST(ProbeText, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(probe_of("gem", "m=1 n=1 k=1"));
  EXPECT_FALSE(probe_of("gemm", "m=1 n=1"));
  EXPECT_FALSE(probe_of("gemm", "m=1 n=1 k=1 j=1"));
  EXPECT_FALSE(probe_of("gemm", "m=1 n=0 k=1"));
  EXPECT_FALSE(probe_of("copy", "bytes=-4"));
}

TEST(SampleTable, NamesTheLineThatCannotBeRead) {
  const std::string text = std::string(sample_header()) + "\ncopy,bytes=64,2,tcp,0,0,5,x\ncopy,bytes=64,2\n";
  try {
    (void)parse_probe_samples(text, "s.csv");
    FAIL() << "was read";
  } catch (const InputError& error) {
    ASSERT_THAT(error.diagnostics(), SizeIs(2));
    EXPECT_EQ(to_string(error.diagnostics()[0]), "s.csv:2:1: error: ranks and seconds must be above 0");
    EXPECT_EQ(to_string(error.diagnostics()[1]), "s.csv:3:1: error: 3 cells instead of 8");
  }
}

TEST(Statistics, AnOutlierMovesNeitherMedianNorSpreadMuch) {
  // Deviations from the median 3: 2 1 0 1 97, their median 1; 1.4826 · 1 / 3.
  const Summary summary = summary_of({1.0, 2.0, 3.0, 4.0, 100.0});
  EXPECT_DOUBLE_EQ(summary.median, 3.0);
  EXPECT_NEAR(summary.spread, 1.4826 / 3.0, 1e-12);
  EXPECT_DOUBLE_EQ(summary_of({1.0, 2.0}).median, 1.5);
}

}  // namespace
}  // namespace ulysim::calibration
