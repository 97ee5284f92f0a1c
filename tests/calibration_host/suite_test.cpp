// Which question this answers: does the suite time nothing before it is right, keep what is known when it is
// interrupted, and read back what it wrote? A made-up backend answers, so every number is known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "calibration/samples/statistics.h"
#include "calibration/samples/table.h"
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
  [[nodiscard]] std::string machine() const override { return "paper, two sheets"; }
  [[nodiscard]] std::string software() const override { return "pencil 2"; }
  [[nodiscard]] PowerState power_state() override { return {.clock_mhz = 1980.0}; }
  [[nodiscard]] double verify(const Probe&) override { return error; }
  [[nodiscard]] std::vector<double> measure(const Probe& probe, Repetitions repetitions) override {
    if (std::holds_alternative<CollectiveProbe>(probe) && collectives == Fate::rank_dies) {
      throw WorldError("rank 1 was killed by signal 9");
    }
    if (std::holds_alternative<CollectiveProbe>(probe) && collectives == Fate::impossible) {
      throw ImpossibleProbe("out of memory");
    }
    ++measured;
    return std::vector<double>(static_cast<std::size_t>(repetitions.timed), seconds);
  }

  double error{1e-7};
  double seconds{0.01};
  enum class Fate { measured, rank_dies, impossible };
  Fate collectives{Fate::measured};
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
  const std::string end =
      ",0,20,,1980,,\"paper, two sheets\",thread,pencil 2,measured by ulysim calibrate run --backend made-up\n";
  // The rates: 2·1·2·3 FLOP and half of 8 bytes in 10 ms.
  EXPECT_EQ(text_of(file_), sample_header() + "gemm,,2,,0.01,,,,,,1,2,3,1,,,,,,,,,,,1.2e-09" + end +
                                "copy,,2,64,0.01,,,,memory,,,,,,,,,,,,,,,," + end +
                                "collective,all_to_all,2,8,0.01,4e-07,false,library,,,,,,,,,,,,,,,,," + end);
}

TEST_F(Suite, AWrongResultIsNeverTimed) {
  MadeUp backend;
  for (const double error : {1e-3, std::numeric_limits<double>::quiet_NaN()}) {
    backend.error = error;
    std::filesystem::remove(file_);
    EXPECT_THAT([&] { (void)run_suite(backend, plan_, {.file = file_}); },
                testing::ThrowsMessage<WorldError>(HasSubstr("copy memory 16 B wrong")));
  }
  EXPECT_EQ(backend.measured, 0);
}

TEST_F(Suite, WhatWasMeasuredBeforeARankDiedIsKeptAndNotMeasuredAgain) {
  MadeUp backend;
  backend.collectives = MadeUp::Fate::rank_dies;
  EXPECT_THAT([&] { (void)run_suite(backend, plan_, {.file = file_}); },
              testing::ThrowsMessage<WorldError>("rank 1 was killed by signal 9"));
  EXPECT_THAT(load_samples(file_), SizeIs(2));
  // The interruption also tore a line.
  std::ofstream(file_, std::ios::app) << "collective,all_to_all,2,8,0.0";
  MadeUp again;
  again.seconds = 0.02;
  const auto samples = run_suite(again, plan_, {.file = file_, .existing = Existing::resume});
  // One probe is left: a trial run and one measurement.
  EXPECT_EQ(again.measured, 2);
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_THAT((std::vector<double>{samples[0].seconds, samples[1].seconds, samples[2].seconds}),
              ElementsAre(0.01, 0.01, 0.02));
  EXPECT_THAT(load_samples(file_), SizeIs(3));
}

TEST_F(Suite, AnExistingFileIsNotTouchedUnasked) {
  std::ofstream(file_) << "precious\n";
  MadeUp backend;
  EXPECT_THROW((void)run_suite(backend, plan_, {.file = file_}), InputError);
  EXPECT_EQ(text_of(file_), "precious\n");
}

TEST_F(Suite, WhatABackendCannotRunIsLeftOutAndTheRestMeasured) {
  MadeUp backend;
  backend.collectives = MadeUp::Fate::impossible;
  EXPECT_THAT(run_suite(backend, plan_, {.file = file_}), SizeIs(2));
}

TEST_F(Suite, NothingIsStartedAfterTheTimeIsUp) {
  MadeUp backend;
  EXPECT_THAT(run_suite(backend, plan_, {.file = file_, .seconds = 0.0}), SizeIs(0));
  EXPECT_EQ(backend.measured, 0);
}

// What a plan holds must be readable from the file that it makes, and one rank has nobody to exchange with.
TEST(Plans, HoldWhatCanBeMeasured) {
  for (const int ranks : {1, 2, 8}) {
    for (const SuiteSize size : {SuiteSize::quick, SuiteSize::standard}) {
      for (const Plan& plan : {host_plan(size, ranks), cuda_plan(size, ranks)}) {
        std::vector<bool> kinds(probe_kinds().size());
        for (const Probe& probe : plan.measure) {
          EXPECT_TRUE(is_measurable(probe)) << describe(probe);
          kinds[probe.index()] = true;
          const Sample sample{.probe = probe, .ranks = ranks, .seconds = 1.0};
          EXPECT_EQ(parse_samples(sample_header() + sample_row(sample), "f").samples.at(0).probe, probe);
        }
        EXPECT_TRUE(kinds[0] && kinds[1] && kinds[2]);
        EXPECT_EQ(kinds[3], ranks > 1);
        EXPECT_FALSE(plan.check.empty());
      }
    }
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
