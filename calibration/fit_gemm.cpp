#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "calibration/fit_parts.h"
#include "calibration/least_squares.h"
#include "hw_models/cost/roofline.h"

namespace ulysim::calibration {
namespace {

struct Tile {
  std::int64_t m{};
  std::int64_t n{};
};
// The tiles that cuBLAS and CUTLASS mostly choose for large bf16 products.
constexpr Tile kTiles[] = {{128, 128}, {128, 256}, {256, 128}, {256, 256}};

constexpr double kPicosecondsPerMicrosecond = 1e6;
constexpr double kAssumedSustained = 0.87;
constexpr std::size_t kShapesEnough = 30;

spec::Sourced<std::int64_t> count_of(std::int64_t value, const spec::Sourced<double>& like) {
  return {.value = value, .source = like.source, .kind = like.kind};
}

// Order: efficiency, wave quantisation, k overhead, launch in microseconds.
const std::vector<Unknown> kUnknowns{
    {.start = 0.85, .low = 0.2, .high = 1.0},
    {.start = 0.5, .low = 0.0, .high = 1.0},
    {.start = 200.0, .low = 0.0, .high = 2000.0},
    {.start = 3.0, .low = 1.0, .high = 5.0},
};

void set(cost::GemmProfile& gemm, const std::vector<double>& x) {
  gemm.efficiency.value = x[0];
  gemm.wave_quantisation.value = x[1];
  gemm.k_overhead.value = x[2];
  gemm.launch.value = Duration(static_cast<std::int64_t>(x[3] * kPicosecondsPerMicrosecond));
}

struct Best {
  double cost{std::numeric_limits<double>::infinity()};
  Tile tile{};
  Estimate estimate{};
  std::vector<double> residuals{};
};

Best fit_tile(Tile tile, const SampleList& samples, const spec::Gpu& gpu, cost::KernelProfile profile) {
  profile.gemm.tile_m.value = tile.m;
  profile.gemm.tile_n.value = tile.n;
  profile.gemm.sustained.value = 1.0;
  const TimedKernels timed(samples);
  const Residuals residuals = [&](const std::vector<double>& x) {
    set(profile.gemm, x);
    return timed.log_ratios(gpu, profile);
  };
  Best best{.tile = tile};
  best.estimate = least_squares(residuals, std::vector<double>(samples.size(), 1.0), kUnknowns);
  best.residuals = residuals(best.estimate.values);
  best.cost = robust_sigma(best.residuals);
  return best;
}

double flops_per_second(const Sample& sample) {
  return flops_of(sample.probe) / sample.seconds;
}

// The median over the sustained shapes of what bursts predict for them. Their very best shapes are small ones that
// throttle least (B200: 1474 against a median of 1090 TFLOP/s), so that a ratio of maxima would not tell of training.
spec::Sourced<double> ratio_to_bursts(const SampleList& sustained, const spec::Gpu& gpu, cost::KernelProfile profile) {
  profile.gemm.sustained.value = 1.0;
  std::vector<double> ratios = TimedKernels(sustained).log_ratios(gpu, profile);
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return fitted_value(rounded(std::min(1.0, std::exp(*middle))), sustained, profile.name);
}

// Of a GPU with shapes enough that ran for long, their ratio to the bursts that `profile` is fitted to. Else the best
// shape that a scan sustains over the best shape of short bursts, on the same GPU: both are maxima, so their ratio is
// fair where a ratio to one shape's prediction would not be. Of many bursts the second best counts: one lucky draw
// must not set the scale.
spec::Sourced<double> sustained_factor(const SampleList& samples, const spec::Gpu& gpu,
                                       const cost::KernelProfile& profile) {
  const std::string& name = profile.name;
  std::map<std::string, SampleList> by_gpu;
  for (const Sample* sample : samples) {
    by_gpu[sample->gpu].push_back(sample);
  }
  SampleList own;
  std::copy_if(by_gpu[name].begin(), by_gpu[name].end(), std::back_inserter(own),
               [](const Sample* sample) { return is_sustained(*sample); });
  if (own.size() >= kShapesEnough) {
    return ratio_to_bursts(own, gpu, profile);
  }
  for (auto& [measured, list] : by_gpu) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Sample* a, const Sample* b) { return flops_per_second(*a) > flops_per_second(*b); });
    SampleList bursts;
    SampleList sustained;
    for (const Sample* sample : list) {
      (is_sustained(*sample) ? sustained : bursts).push_back(sample);
    }
    if (!bursts.empty() && !sustained.empty()) {
      const Sample* burst = bursts[std::min<std::size_t>(bursts.size() - 1, 1)];
      const double factor = std::min(1.0, flops_per_second(*sustained.front()) / flops_per_second(*burst));
      return fitted_value(rounded(factor), {burst, sustained.front()}, name);
    }
  }
  return assumed_value(kAssumedSustained,
                       "no sustained sample; as Hopper sustains (MAMF against aiconfigurator bursts)");
}

}  // namespace

Covariance fit_gemm(const SampleList& samples, const spec::Gpu& gpu, cost::KernelProfile& profile) {
  SampleList bursts;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(bursts),
               [](const Sample* sample) { return !is_sustained(*sample); });
  bursts = bursts.empty() ? samples : bursts;
  Best best;
  for (const Tile tile : kTiles) {
    Best candidate = fit_tile(tile, bursts, gpu, profile);
    if (candidate.cost < best.cost) {
      best = candidate;
    }
  }
  const std::vector<double>& x = best.estimate.values;
  const auto sourced = [&](double value) { return fitted_value(rounded(value), bursts, profile.name); };
  cost::GemmProfile& gemm = profile.gemm;
  gemm.efficiency = sourced(x[0]);
  gemm.efficiency.spread = rounded(robust_sigma(best.residuals));
  gemm.wave_quantisation = sourced(x[1]);
  gemm.k_overhead = sourced(x[2]);
  gemm.tile_m = count_of(best.tile.m, gemm.efficiency);
  gemm.tile_n = count_of(best.tile.n, gemm.efficiency);
  const double nanoseconds = std::round(x[3] * 1e3);
  gemm.launch = {.value = Duration(static_cast<std::int64_t>(nanoseconds) * 1000),
                 .source = gemm.efficiency.source,
                 .kind = gemm.efficiency.kind};
  if (bursts.size() < samples.size() || gemm.sustained.source.empty()) {
    gemm.sustained = sustained_factor(samples, gpu, profile);
  }
  return {.part = "gemm",
          .parameters = {"efficiency", "wave_quantisation", "k_overhead", "launch us"},
          .values = x,
          .matrix = best.estimate.covariance};
}

}  // namespace ulysim::calibration
