// Which question this answers: do curves of collectives find the lines that made the samples, and never fall?

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/fit_report.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

// 5 us and 1 us for each further rank; 20 GB/s on the wire below 1 MiB, 100 GB/s for what lies above.
double pencil(const CollectiveProbe& probe, std::int64_t ranks) {
  const double bytes = static_cast<double>(probe.bytes) * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const double small = std::min(bytes, 1048576.0);
  return 5e-6 + 1e-6 * static_cast<double>(ranks - 1) + small / 20e9 + (bytes - small) / 100e9;
}

std::vector<Sample> sweeps() {
  std::vector<Sample> samples;
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (std::int64_t bytes = 1 << 16; bytes <= 1 << 29; bytes *= 2) {
      const CollectiveProbe probe{.collective = Collective::all_to_all, .bytes = bytes};
      samples.push_back({.probe = probe, .ranks = ranks, .fabric = "pencil", .seconds = pencil(probe, ranks)});
    }
  }
  return samples;
}

TEST(Collectives, ACurveFindsItsLines) {
  const std::vector<Sample> samples = sweeps();
  const auto curves = fit_collectives(samples);
  ASSERT_EQ(curves.size(), 1U);
  EXPECT_NEAR(curves[0].latency, 5e-6, 1e-9);
  EXPECT_NEAR(curves[0].rank_latency, 1e-6, 1e-10);
  EXPECT_NEAR(1.0 / curves[0].segments.front().seconds_per_byte, 20e9, 1e6);
  EXPECT_NEAR(1.0 / curves[0].segments.back().seconds_per_byte, 100e9, 1e6);
  for (const Sample& sample : samples) {
    EXPECT_NEAR(*predicted_seconds(sample, curves) / sample.seconds, 1.0, 1e-6);
  }
}

// A dip (an algorithm that changes) must not make more bytes take less time.
TEST(Collectives, MoreBytesNeverTakeLessTime) {
  std::vector<Sample> samples = sweeps();
  for (Sample& sample : samples) {
    const auto& probe = std::get<CollectiveProbe>(sample.probe);
    sample.seconds *= probe.bytes == 1 << 24 ? 0.3 : 1.0;
  }
  const auto curves = fit_collectives(samples);
  double last = 0.0;
  for (std::int64_t bytes = 1 << 16; bytes <= 1 << 30; bytes += bytes / 8) {
    const double now = curves[0].seconds({.collective = Collective::all_to_all, .bytes = bytes}, 8);
    EXPECT_GE(now, last) << bytes;
    last = now;
  }
}

TEST(Collectives, OneSizeTellsNoRate) {
  const std::vector<Sample> samples = sweeps();
  EXPECT_THROW((void)fit_curve({&samples[0], &samples[0]}, {}), InputError);
  EXPECT_TRUE(fit_collectives({samples.data(), 3}).empty());
}

// What a further rank costs shows in no sweep of one number of ranks: nothing, and no error of it.
TEST(Collectives, OneNumberOfRanksTellsNothingOfFurtherOnes) {
  std::vector<Sample> samples = sweeps();
  std::erase_if(samples, [](const Sample& sample) { return sample.ranks != 4; });
  const auto curves = fit_collectives(samples);
  EXPECT_EQ(curves.at(0).rank_latency, 0.0);
  EXPECT_NEAR(curves[0].latency, 8e-6, 1e-9);  // 5 us and 1 us for each of three
  for (const double covariance : curves[0].estimate.covariance) {
    EXPECT_TRUE(std::isfinite(covariance));
  }
}

// Sweeps are held out whole: the 8 ranks' one is predicted from those of 2 and 4, here exactly.
TEST(Collectives, WholeSweepsAreHeldOut) {
  const FitReport report = assess(sweeps(), collective_fitter(), 2);
  ASSERT_EQ(report.groups.size(), 1U);
  EXPECT_EQ(report.groups[0].name, "all_to_all");
  EXPECT_EQ(report.groups[0].points, 42U);
  ASSERT_TRUE(report.groups[0].held_out_median.has_value());
  EXPECT_NEAR(report.groups[0].median, 0.0, 1e-6);
}

}  // namespace
}  // namespace ulysim::calibration
