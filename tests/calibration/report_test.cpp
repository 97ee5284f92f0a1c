// Which question this answers: does a report score what it says, hold out whole families, and print what was found?

#include "calibration/fit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/base/diagnostics.h"
#include "sim/config/document.h"

namespace ulysim::calibration {
namespace {

using testing::HasSubstr;

/// GEMMs of four families (N) with three lengths each, all of 1 ms.
std::vector<Sample> gemms() {
  std::vector<Sample> samples;
  for (const std::int64_t n : {4096, 5120, 6144, 8192}) {
    for (const std::int64_t m : {2048, 4096, 8192}) {
      samples.push_back({.probe = GemmProbe{.m = m, .n = n, .k = 4096}, .seconds = 1e-3});
    }
  }
  return samples;
}

const GemmProbe& gemm_of(const Sample& sample) {
  return std::get<GemmProbe>(sample.probe);
}

/// Right where it has seen the family, 10% off for short products, 20% late where it has not.
Predictor by_memory(std::span<const Sample> seen) {
  std::set<std::int64_t> families;
  for (const Sample& sample : seen) {
    families.insert(gemm_of(sample).n);
  }
  return [families](const Sample& sample) -> std::optional<double> {
    if (!families.contains(gemm_of(sample).n)) {
      return 1.2 * sample.seconds;
    }
    return (gemm_of(sample).m == 2048 ? 1.1 : 1.0) * sample.seconds;
  };
}

TEST(Report, AWholeFamilyIsHeldOutAtATime) {
  const FitReport report = assess(gemms(), by_memory, 2);
  ASSERT_EQ(report.groups.size(), 1U);
  const GroupErrors& group = report.groups[0];
  EXPECT_EQ(group.name, "gemm >= 10 GFLOP");
  EXPECT_EQ(group.points, 12U);
  EXPECT_NEAR(group.median, 0.0, 1e-12);  // 8 of 12 are right
  EXPECT_NEAR(group.worst, 0.1, 1e-12);
  EXPECT_NEAR(group.held_out_median.value(), 0.2, 1e-12);  // and none was seen when it was held out
}

TEST(Report, ResidualsAreRatesAndSayWhichSample) {
  const FitReport report = assess(gemms(), by_memory, 2);
  // 2·2048·4096·4096 FLOP in 1 ms are 68.7 TFLOP/s; 10% later, 62.5.
  EXPECT_EQ(report.residuals.at(0).label, "gemm 2048 x 4096 x 4096");
  EXPECT_NEAR(report.residuals[0].measured, 68.72, 0.01);
  EXPECT_NEAR(report.residuals[0].fitted, 62.47, 0.01);
  EXPECT_EQ(report.residuals[0].unit, "TFLOP/s");
}

TEST(Report, TooFewSamplesLeaveNothingHeldOut) {
  const Fitter asks_for_all = [](std::span<const Sample> seen) -> Predictor {
    if (seen.size() < 12) {
      throw InputError({{.where = {.file = "test"}, .message = "too few"}});
    }
    return by_memory(seen);
  };
  EXPECT_FALSE(assess(gemms(), asks_for_all, 2).groups.at(0).held_out_median.has_value());
}

// Trained on 4K alone: that fitter knows lengths up to 4096 and is a quarter late beyond.
TEST(Report, ExtrapolationIsScoredByDirection) {
  std::vector<Sample> samples;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const std::int64_t tokens : {4096, 16384, 32768}) {
      samples.push_back(
          {.probe =
               AttentionProbe{
                   .pass = pass, .heads = 8, .kv_heads = 8, .head_dim = 128, .queries = tokens, .keys = tokens},
           .seconds = 1e-3});
    }
  }
  const Fitter knows_lengths = [](std::span<const Sample> seen) -> Predictor {
    std::int64_t longest = 0;
    for (const Sample& sample : seen) {
      longest = std::max(longest, std::get<AttentionProbe>(sample.probe).queries);
    }
    return [longest](const Sample& sample) -> std::optional<double> {
      return (std::get<AttentionProbe>(sample.probe).queries > longest ? 1.25 : 1.0) * sample.seconds;
    };
  };
  const auto groups = assess_extrapolation(samples, knows_lengths, 8192, 16384);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[1].name, "attention forward >= 16K, from <= 8K");
  EXPECT_EQ(groups[1].points, 2U);
  EXPECT_NEAR(groups[1].median, 0.0, 1e-12);
  EXPECT_NEAR(groups[1].held_out_median.value(), 0.25, 1e-12);
}

// Bursts alone are short enough to be fitted; what ran for long is half as fast, and half is the error of that alone.
TEST(Report, ExtrapolationIsScoredByRegimeToo) {
  std::vector<Sample> samples;
  for (const auto& [tokens, regime] : {std::pair{4096, Regime::burst}, std::pair{16384, Regime::burst},
                                       std::pair{32768, Regime::sustained}, std::pair{65536, Regime::sustained}}) {
    samples.push_back(
        {.probe = AttentionProbe{.heads = 8, .kv_heads = 8, .head_dim = 128, .queries = tokens, .keys = tokens},
         .seconds = regime == Regime::burst ? 1e-3 : 2e-3,
         .regime = regime});
  }
  const Fitter knows_bursts = [](std::span<const Sample>) -> Predictor {
    return [](const Sample&) -> std::optional<double> { return 1e-3; };
  };
  const auto groups = assess_extrapolation(samples, knows_bursts, 8192, 16384);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].points, 3U);
  EXPECT_EQ(groups[1].name, "attention forward >= 16K, from <= 8K, burst");
  EXPECT_NEAR(groups[1].held_out_median.value(), 0.0, 1e-12);
  EXPECT_EQ(groups[2].name, "attention forward >= 16K, from <= 8K, sustained");
  EXPECT_NEAR(groups[2].held_out_median.value(), 0.5, 1e-12);
}

FitReport small_report() {
  FitReport report = assess(gemms(), by_memory, 2);
  report.name = "lab";
  report.parameters = {{.part = "gemm",
                        .name = "launch",
                        .value = 3.5,
                        .unit = "us",
                        .source = "a \"lab\"",
                        .kind = "measured",
                        .spread = 0.02}};
  report.covariances = {{.part = "gemm",
                         .parameters = {"a", "b", "c"},
                         .values = {1.0, 2.0, 3.0},
                         .matrix = {4, 3.9, 0, 3.9, 4, 0, 0, 0, 0}}};
  return report;
}

TEST(Report, TextTellsErrorsTheFarthestSamplesAndWhatIsBadlyKnown) {
  const std::string text = to_text(small_report());
  EXPECT_THAT(text,
              HasSubstr("gemm >= 10 GFLOP                                   12    0.0%   10.0%   10.0%       20.0%"));
  EXPECT_THAT(text, HasSubstr("gemm 2048 x 4096 x 4096"));
  EXPECT_THAT(text, HasSubstr("+- 2\n"));  // the root of 4
  EXPECT_THAT(text, HasSubstr("a and b are told apart badly: correlation 0.97"));
  EXPECT_THAT(text, HasSubstr("at a bound, or not told"));
}

TEST(Report, JsonKeepsTheContract) {
  const config::Node root = config::parse_json(to_json(small_report()), "fit");
  EXPECT_EQ(root.find("format")->text, "ulysim-result");
  EXPECT_EQ(root.find("kind")->text, "fit");
  const config::Node& parameter = root.find("parameters")->items.at(0);
  EXPECT_EQ(parameter.find("name")->text, "gemm launch");
  EXPECT_EQ(parameter.find("value")->text, "3.5");
  EXPECT_EQ(parameter.find("unit")->text, "us");
  EXPECT_EQ(parameter.find("source")->text, "a \"lab\"");
  EXPECT_EQ(parameter.find("kind")->text, "measured");
  const config::Node& group = root.find("groups")->items.at(0);
  for (const char* key : {"name", "points", "median_error", "p90_error", "worst_error", "cross_validated_median"}) {
    EXPECT_NE(group.find(key), nullptr) << key;
  }
  ASSERT_EQ(root.find("residuals")->items.size(), 12U);
  for (const char* key : {"group", "label", "measured", "fitted", "unit"}) {
    EXPECT_NE(root.find("residuals")->items[0].find(key), nullptr) << key;
  }
  EXPECT_EQ(root.find("covariances")->items.at(0).find("covariance")->items.size(), 9U);
}

}  // namespace
}  // namespace ulysim::calibration
