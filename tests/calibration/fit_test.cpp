#include "calibration/fit_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibration/least_squares.h"
#include "calibration/write_profile.h"
#include "hw_models/cost/roofline.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

using kernel::AttentionKernel;
using kernel::Direction;

spec::Gpu a_gpu() {
  spec::Gpu gpu{.name = "lab", .kernel_profile = "lab"};
  gpu.memory_bandwidth.value = Bandwidth(2e12);
  gpu.sms.value = 100;
  gpu.bf16.value = FlopRate(300e12);
  return gpu;
}

// y = a·x + b through (0, 1), (1, 3), (2, 5): a = 2, b = 1; the fourth point lies far off and must not matter much.
TEST(LeastSquares, FindsALineAndWithstandsAnOutlier) {
  const std::vector<std::pair<double, double>> points{{0, 1}, {1, 3}, {2, 5}, {3, 7}, {4, 9}, {2, 50}};
  const Residuals residuals = [&](const std::vector<double>& p) {
    std::vector<double> r;
    for (const auto& [x, y] : points) {
      r.push_back(p[0] * x + p[1] - y);
    }
    return r;
  };
  const auto found =
      least_squares(residuals, std::vector<double>(points.size(), 1.0), {{1.0, 0.0, 10.0}, {0.0, 0.0, 10.0}}).values;
  EXPECT_NEAR(found[0], 2.0, 0.05);
  EXPECT_NEAR(found[1], 1.0, 0.15);
}

// A mean of n values that err by ±1: σ²/(n − 1) = 1/3 for four of them.
TEST(LeastSquares, KnowsHowSureAMeanIs) {
  const std::vector<double> values{1.0, 3.0, 1.0, 3.0};
  const Residuals residuals = [&](const std::vector<double>& p) {
    std::vector<double> r;
    for (const double value : values) {
      r.push_back((p[0] - value) / 100.0);  // within the quadratic part of the Huber loss
    }
    return r;
  };
  const Estimate mean = least_squares(residuals, std::vector<double>(4, 1.0), {{1.0, 0.0, 10.0}});
  EXPECT_NEAR(mean.values[0], 2.0, 1e-6);
  EXPECT_NEAR(mean.covariance[0], 1.0 / 3.0, 1e-6);
}

// 3 + 2x is met exactly; its mirror image, 3 − 2x, would need a negative slope: then the best constant is left, and
// nothing is known of the slope.
TEST(NonNegativeLeastSquares, FindsALineAndNeverANegativeSlope) {
  const auto fit = [](double slope) {
    std::vector<LinearRow> rows;
    for (const double x : {0.0, 0.25, 0.5, 1.0}) {
      rows.push_back({.features = {1.0, x}, .target = 3.0 + slope * x});
    }
    return non_negative_least_squares(rows);
  };
  EXPECT_NEAR(fit(2.0).values[0], 3.0, 1e-9);
  EXPECT_NEAR(fit(2.0).values[1], 2.0, 1e-9);
  const Estimate falling = fit(-2.0);
  EXPECT_EQ(falling.values[1], 0.0);
  EXPECT_EQ(falling.covariance[3], 0.0);
  EXPECT_GT(falling.values[0], 1.0);
  EXPECT_LT(falling.values[0], 3.0);
}

// The first column explains most by itself and is taken first; with the other two it would turn negative. Without it
// b = c, and (2b − 1)² twice plus (1.8b − 1)² is least at b = (2·2 + 1.8) / (2·4 + 1.8²) = 5.8/11.24.
TEST(NonNegativeLeastSquares, LetsGoOfAParameterThatWouldTurnNegative) {
  const std::vector<LinearRow> rows{{.features = {1.0, 2.0, 0.0}, .target = 1.0},
                                    {.features = {1.0, 0.0, 2.0}, .target = 1.0},
                                    {.features = {0.5, 0.9, 0.9}, .target = 1.0}};
  const Estimate fit = non_negative_least_squares(rows);
  EXPECT_EQ(fit.values[0], 0.0);
  EXPECT_NEAR(fit.values[1], 5.8 / 11.24, 1e-9);
  EXPECT_NEAR(fit.values[2], 5.8 / 11.24, 1e-9);
}

TEST(LeastSquares, StopsAtABound) {
  const Residuals residuals = [](const std::vector<double>& p) { return std::vector<double>{p[0] - 5.0}; };
  EXPECT_DOUBLE_EQ(least_squares(residuals, {1.0}, {{1.0, 0.0, 2.0}}).values[0], 2.0);
}

/// Samples that a known profile would give.
std::vector<Sample> samples_of(const cost::KernelProfile& truth) {
  std::vector<Sample> samples;
  const auto add = [&](const Probe& probe) {
    samples.push_back({.probe = probe,
                       .gpu = "lab",
                       .seconds = cost::kernel_seconds(kernels_of(probe).front(), a_gpu(), truth),
                       .source = "arithmetic"});
  };
  for (const std::int64_t m : {256, 640, 1000, 2048, 5000, 8192, 20000}) {
    for (const std::int64_t n : {1024, 3072, 5120}) {
      for (const std::int64_t k : {512, 2048, 8192}) {
        add(GemmProbe{.m = m, .n = n, .k = k});
      }
    }
  }
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const std::int64_t head_dim : {64, 128}) {
      for (const std::int64_t s : {256, 512, 1024, 4096, 16384, 65536}) {
        for (const std::int64_t heads : {4, 16, 32}) {
          for (const Mask mask : {Mask::full, Mask::causal}) {
            add(AttentionProbe{.pass = pass,
                               .mask = mask,
                               .heads = heads,
                               .kv_heads = heads,
                               .head_dim = head_dim,
                               .queries = s,
                               .keys = s});
          }
        }
      }
    }
  }
  return samples;
}

cost::KernelProfile a_truth() {
  const spec::Sourced<Duration> launch{.value = Duration(3'000'000)};
  cost::KernelProfile truth{.name = "lab"};
  truth.gemm = {.efficiency = {.value = 0.8},
                .sustained = {.value = 1.0},
                .tile_m = {.value = 128},
                .tile_n = {.value = 256},
                .wave_quantisation = {.value = 0.4},
                .k_overhead = {.value = 150.0},
                .launch = launch};
  truth.attention_sustained.value = 1.0;
  const auto entry = [&](Direction direction, double efficiency, double masked, double keys, double saturation) {
    return cost::AttentionProfile{.direction = direction,
                                  .efficiency_64 = {.value = 0.8 * efficiency},
                                  .efficiency_128 = {.value = efficiency},
                                  .masked_factor = {.value = masked},
                                  .masked_keys = {.value = keys},
                                  .saturation_keys = {.value = saturation},
                                  .imbalance = {.value = 0.5},
                                  .launch = launch};
  };
  truth.attention = {entry(Direction::forward, 0.6, 0.9, 120.0, 150.0),
                     entry(Direction::backward, 0.5, 0.95, 200.0, 300.0)};
  truth.memory_bound = {.bandwidth_efficiency = {.value = 0.854}, .launch = launch};
  return truth;
}

TEST(Fit, FindsTheParametersThatMadeTheSamples) {
  const cost::KernelProfile truth = a_truth();
  const cost::KernelProfile found = fit_profile(samples_of(truth), a_gpu()).profile;
  EXPECT_NEAR(found.gemm.efficiency.value, 0.8, 0.008);
  EXPECT_EQ(found.gemm.tile_n.value * found.gemm.tile_m.value, 128 * 256);
  EXPECT_NEAR(found.gemm.wave_quantisation.value, 0.4, 0.02);
  EXPECT_NEAR(found.gemm.k_overhead.value, 150.0, 5.0);
  for (const auto direction : {Direction::forward, Direction::backward}) {
    const auto& want = attention_profile(truth, AttentionKernel::flash_attention_2, direction);
    const auto& got = attention_profile(found, AttentionKernel::flash_attention_2, direction);
    // The asymptote is held at the best rate sampled, so it may stay 1% short of the true one.
    EXPECT_NEAR(got.efficiency_128.value / want.efficiency_128.value, 1.0, 0.01);
    EXPECT_NEAR(got.efficiency_64.value / want.efficiency_64.value, 1.0, 0.01);
    EXPECT_NEAR(got.masked_factor.value, want.masked_factor.value, 0.01);
    EXPECT_NEAR(got.masked_keys.value / want.masked_keys.value, 1.0, 0.1);
    EXPECT_NEAR(got.saturation_keys.value / want.saturation_keys.value, 1.0, 0.05);
    EXPECT_NEAR(got.imbalance.value, 0.5, 0.03);
    EXPECT_EQ(got.efficiency_128.kind, spec::SourceKind::published);
  }
}

TEST(Fit, WhatNoSampleTellsIsAssumedAndSaysSo) {
  const cost::KernelProfile found = fit_profile(samples_of(a_truth()), a_gpu()).profile;
  for (const auto implementation : {AttentionKernel::flash_attention_3, AttentionKernel::sdpa}) {
    const auto& entry = attention_profile(found, implementation, Direction::forward);
    EXPECT_EQ(entry.efficiency_128.kind, spec::SourceKind::assumed);
    EXPECT_NE(entry.efficiency_128.source.find("as flash-attention-2"), std::string::npos);
  }
  EXPECT_EQ(found.gemm.sustained.kind, spec::SourceKind::assumed);
}

TEST(Fit, ShapesThatRanForLongTellWhatIsSustained) {
  // 63 shapes of the bursts again, each a quarter slower: 0.75, though one ran as fast as its burst.
  std::vector<Sample> samples = samples_of(a_truth());
  const std::size_t bursts = 63;
  for (std::size_t i = 0; i < bursts; ++i) {
    Sample lasting = samples[i];
    lasting.regime = Regime::sustained;
    lasting.seconds /= i == bursts - 1 ? 1.0 : 0.75;
    samples.push_back(lasting);
  }
  const cost::KernelProfile found = fit_profile(samples, a_gpu()).profile;
  EXPECT_NEAR(found.gemm.sustained.value, 0.75, 0.01);
  EXPECT_EQ(found.gemm.sustained.kind, spec::SourceKind::published);
}

// Short causal rows cannot tell a lasting loss from the diagonal's: the factor is then none, and says on what grounds.
TEST(Fit, ALastingLossNeedsLongCausalSamples) {
  std::vector<Sample> samples = samples_of(a_truth());
  samples.erase(std::remove_if(samples.begin(), samples.end(),
                               [](const Sample& s) {
                                 const auto* a = std::get_if<AttentionProbe>(&s.probe);
                                 return a != nullptr && a->queries >= 32768;
                               }),
                samples.end());
  const cost::KernelProfile found = fit_profile(samples, a_gpu()).profile;
  const auto& entry = attention_profile(found, AttentionKernel::flash_attention_2, Direction::forward);
  EXPECT_EQ(entry.masked_factor.value, 1.0);
  EXPECT_EQ(entry.masked_factor.kind, spec::SourceKind::assumed);
  EXPECT_NE(entry.masked_factor.source.find("cuDNN on H200"), std::string::npos);
  EXPECT_GT(entry.masked_keys.value, 120.0);  // and what was lost for another reason counts as the diagonal's
  EXPECT_EQ(entry.masked_keys.kind, spec::SourceKind::published);
}

// Causal rows alone: the diagonal's keys pass for a late start of every row, so one tile is assumed.
TEST(Fit, MaskedKeysNeedFullSamplesToo) {
  std::vector<Sample> samples = samples_of(a_truth());
  samples.erase(std::remove_if(samples.begin(), samples.end(),
                               [](const Sample& s) {
                                 const auto* a = std::get_if<AttentionProbe>(&s.probe);
                                 return a != nullptr && a->mask == Mask::full;
                               }),
                samples.end());
  const cost::KernelProfile found = fit_profile(samples, a_gpu()).profile;
  const auto& entry = attention_profile(found, AttentionKernel::flash_attention_2, Direction::backward);
  EXPECT_EQ(entry.masked_keys.value, 128.0);
  EXPECT_EQ(entry.masked_keys.kind, spec::SourceKind::assumed);
  EXPECT_EQ(entry.masked_factor.value, 1.0);
}

TEST(Fit, SamplesOfAnotherGpuMakeAnAssumption) {
  std::vector<Sample> samples = samples_of(a_truth());
  for (Sample& sample : samples) {
    sample.gpu = "elsewhere";
  }
  const cost::KernelProfile found = fit_profile(samples, a_gpu()).profile;
  EXPECT_EQ(found.gemm.efficiency.kind, spec::SourceKind::assumed);
  EXPECT_NE(found.gemm.efficiency.source.find("measured on elsewhere"), std::string::npos);
}

TEST(Fit, AsksForTheSamplesThatItNeeds) {
  EXPECT_THROW((void)fit_profile(std::vector<Sample>{}, a_gpu()), InputError);
}

/// The truth's samples as a profiler of whole calls has them: a forward call has waited 70 us for the host, and up to
/// 16K all ran a quarter faster than longer ones did.
std::vector<Sample> profiled_calls() {
  std::vector<Sample> samples = samples_of(a_truth());
  const cost::KernelProfile truth = a_truth();
  cost::KernelProfile of_bursts = truth;
  of_bursts.attention_sustained.value = 1.25;
  for (Sample& sample : samples) {
    auto* const attention = std::get_if<AttentionProbe>(&sample.probe);
    if (attention == nullptr) {
      continue;
    }
    const bool long_run = attention->queries > 16384;
    sample.regime = long_run ? Regime::sustained : Regime::burst;
    sample.seconds = cost::kernel_seconds(kernels_of(sample.probe).front(), a_gpu(), long_run ? truth : of_bursts);
    if (attention->pass == Pass::forward) {
      attention->pass = Pass::forward_host_gap;
      sample.seconds += 70e-6;
    }
  }
  return samples;
}

TEST(Fit, TellsTheHostsGapAndBurstsFromTheKernel) {
  const ProfileFit found = fit_profile(profiled_calls(), a_gpu());
  const Circumstances& around = found.circumstances.at(AttentionKernel::flash_attention_2);
  EXPECT_NEAR(around.host_gap, 70e-6, 2e-6);
  EXPECT_NEAR(around.burst_gain, 1.25, 0.02);
  for (const auto direction : {Direction::forward, Direction::backward}) {
    const auto& want = attention_profile(a_truth(), AttentionKernel::flash_attention_2, direction);
    const auto& got = attention_profile(found.profile, AttentionKernel::flash_attention_2, direction);
    EXPECT_NEAR(got.efficiency_128.value / want.efficiency_128.value, 1.0, 0.02);  // what is sustained
    EXPECT_NEAR(got.saturation_keys.value / want.saturation_keys.value, 1.0, 0.1);
  }
}

TEST(Fit, PredictsACallWithTheGapAndAsFastAsABurst) {
  const ProfileFit found = fit_profile(profiled_calls(), a_gpu());
  for (const Sample& sample : profiled_calls()) {
    EXPECT_NEAR(predicted_seconds(sample, a_gpu(), found.profile, found.circumstances) / sample.seconds, 1.0, 0.04);
  }
}

// Another table's long runs are another machine: nothing tells then how much faster these bursts were.
TEST(Fit, BurstsAndLongRunsOfDifferentSourcesAreNotCompared) {
  std::vector<Sample> samples = profiled_calls();
  for (Sample& sample : samples) {
    sample.source = sample.regime == Regime::sustained ? "another lab" : "arithmetic";
  }
  const ProfileFit found = fit_profile(samples, a_gpu());
  EXPECT_EQ(found.circumstances.at(AttentionKernel::flash_attention_2).burst_gain, 1.0);
}

// What one's own samples do not tell stays as it was: here only GEMMs are told of, at half the rate.
TEST(Fit, OwnSamplesReplaceWhatTheyTellOf) {
  const cost::KernelProfile base = fit_profile(samples_of(a_truth()), a_gpu()).profile;
  std::vector<Sample> own = samples_of(a_truth());
  std::erase_if(own, [](const Sample& s) { return !std::holds_alternative<GemmProbe>(s.probe); });
  for (Sample& sample : own) {
    sample.gpu = "my cluster";
    sample.seconds *= 2.0;
  }
  const cost::KernelProfile found = refit_profile(own, a_gpu(), base).profile;
  EXPECT_NEAR(found.gemm.efficiency.value, 0.4, 0.02);
  EXPECT_EQ(found.gemm.efficiency.kind, spec::SourceKind::measured);
  EXPECT_EQ(found.gemm.sustained.value, base.gemm.sustained.value);
  ASSERT_EQ(found.attention.size(), base.attention.size());
  EXPECT_EQ(found.attention[0].efficiency_128.value, base.attention[0].efficiency_128.value);
  EXPECT_EQ(found.attention[0].efficiency_128.kind, spec::SourceKind::published);
  EXPECT_THROW((void)refit_profile(std::vector<Sample>{}, a_gpu(), base), InputError);
}

// 2 us and 1 TB/s of the 2 TB/s that the data sheet says.
TEST(Fit, CopiesTellWhatMemoryGives) {
  std::vector<Sample> copies;
  for (const std::int64_t bytes : {1 << 20, 1 << 24, 1 << 28}) {
    copies.push_back({.probe = CopyProbe{.path = CopyPath::kernel, .bytes = bytes},
                      .seconds = 2e-6 + 2.0 * static_cast<double>(bytes) / 1e12});
  }
  const cost::KernelProfile base = fit_profile(samples_of(a_truth()), a_gpu()).profile;
  const cost::KernelProfile found = refit_profile(copies, a_gpu(), base).profile;
  EXPECT_NEAR(found.memory_bound.bandwidth_efficiency.value, 0.5, 1e-3);
  EXPECT_NEAR(seconds(found.memory_bound.launch.value), 2e-6, 1e-8);
  EXPECT_EQ(found.memory_bound.launch.kind, spec::SourceKind::measured);
}

TEST(Fit, AWrittenProfileReadsBackToTheSameText) {
  cost::KernelProfile found = fit_profile(samples_of(a_truth()), a_gpu()).profile;
  found.summary = "quotes \" and \\ and : # survive";
  const std::string text = write_profile(found);
  const cost::KernelProfile read = cost::parse_kernel_profile(text, "lab.yaml");
  EXPECT_EQ(write_profile(read), text);
  EXPECT_EQ(read.gemm.efficiency.value, found.gemm.efficiency.value);
  EXPECT_EQ(read.gemm.launch.value, found.gemm.launch.value);
  EXPECT_EQ(read.summary, found.summary);
}

}  // namespace
}  // namespace ulysim::calibration
