#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <variant>

#include "calibration/fit.h"
#include "calibration/fit_parts.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"
#include "sim/base/parse_quantity.h"

namespace ulysim::calibration {
namespace {

constexpr double kNormalSigmaOverMedian = 1.4826;
constexpr double kBandwidthEfficiency = 0.854;  // 1328 / 1555
constexpr double kBandwidthSpread = 0.05;

bool is_gemm(const Sample& sample) {
  return std::holds_alternative<kernel::Gemm>(sample.kernels.front());
}

cost::MemoryBoundProfile memory_bound() {
  auto efficiency = assumed_value(
      kBandwidthEfficiency, "FlagOpen FlagPerf main_memory-bandwidth: A100-40GB reaches 1328 of 1555 GB/s; as there");
  efficiency.spread = kBandwidthSpread;
  return {.bandwidth_efficiency = efficiency};
}

void require_samples(const SampleList& gemm, const SampleList& attention, const std::string& name) {
  const bool forward = std::any_of(attention.begin(), attention.end(), [](const Sample* sample) {
    const auto& a = std::get<kernel::Attention>(sample->kernels.front());
    return a.implementation == kernel::AttentionKernel::flash_attention_2 && a.direction == kernel::Direction::forward;
  });
  if (gemm.empty() || !forward) {
    throw InputError(
        {{.where = {.file = name}, .message = "a fit needs GEMM samples and flash-attention-2 forward samples"}});
  }
}

}  // namespace

double rounded(double value) {
  return std::get<double>(parse_number(fmt::format("{:.4g}", value)));
}

double robust_sigma(std::vector<double> residuals) {
  ULYSIM_CHECK(!residuals.empty(), "no residuals");
  for (double& r : residuals) {
    r = std::abs(r);
  }
  const auto middle = residuals.begin() + static_cast<std::ptrdiff_t>(residuals.size() / 2);
  std::nth_element(residuals.begin(), middle, residuals.end());
  return kNormalSigmaOverMedian * *middle;
}

std::vector<double> weights_by_source(const SampleList& samples) {
  std::map<std::string, double> rows;
  for (const Sample* sample : samples) {
    rows[sample->source] += 1.0;
  }
  std::vector<double> weights;
  for (const Sample* sample : samples) {
    weights.push_back(1.0 / std::sqrt(rows[sample->source]));
  }
  return weights;
}

spec::Sourced<double> fitted_value(double value, const SampleList& samples, const std::string& name) {
  std::set<std::string> sources;
  std::set<std::string> elsewhere;
  for (const Sample* sample : samples) {
    sources.insert(sample->source);
    if (sample->gpu != name) {
      elsewhere.insert(sample->gpu);
    }
  }
  std::string source = fmt::format("fit of {} samples: {}", samples.size(), fmt::join(sources, "; "));
  if (!elsewhere.empty()) {
    source += fmt::format("; measured on {}", fmt::join(elsewhere, ", "));
  }
  return {.value = value,
          .source = source,
          .kind = elsewhere.empty() ? spec::SourceKind::published : spec::SourceKind::assumed};
}

spec::Sourced<double> assumed_value(double value, const std::string& why) {
  return {.value = value, .source = why, .kind = spec::SourceKind::assumed};
}

cost::KernelProfile fit_profile(std::span<const Sample> samples, const spec::Gpu& gpu) {
  SampleList gemm;
  SampleList attention;
  for (const Sample& sample : samples) {
    (is_gemm(sample) ? gemm : attention).push_back(&sample);
  }
  cost::KernelProfile profile{.name = gpu.kernel_profile.empty() ? gpu.name : gpu.kernel_profile};
  require_samples(gemm, attention, profile.name);
  profile.summary = fmt::format("fit of {} GEMM and {} attention samples", gemm.size(), attention.size());
  profile.attention_sustained = {
      .value = 1.0,
      .source =
          "runs of a second (AI_analysis, H100 FlashAttention-2) are as fast as short ones; UPipe arXiv "
          "2602.21196 holds 598-630 TFLOP/s over whole steps",
      .kind = spec::SourceKind::published};
  profile.memory_bound = memory_bound();
  fit_gemm(gemm, gpu, profile);
  profile.memory_bound.launch = {
      .value = profile.gemm.launch.value, .source = "as the launch of a GEMM", .kind = spec::SourceKind::assumed};
  fit_attention(attention, gpu, profile);
  return profile;
}

cost::KernelProfile generic_profile(const cost::KernelProfile& from) {
  cost::KernelProfile profile = from;
  profile.name = "generic";
  profile.summary = fmt::format("fractions of the peak as {} reaches them, for a GPU without samples", from.name);
  const std::string source = fmt::format("as {}", from.name);
  const auto relabel = [&](auto&... values) {
    ((values.source = source, values.kind = spec::SourceKind::assumed), ...);
  };
  cost::GemmProfile& gemm = profile.gemm;
  relabel(gemm.efficiency, gemm.sustained, gemm.tile_m, gemm.tile_n, gemm.wave_quantisation, gemm.k_overhead,
          gemm.launch, profile.attention_sustained, profile.memory_bound.bandwidth_efficiency,
          profile.memory_bound.launch);
  for (cost::AttentionProfile& a : profile.attention) {
    relabel(a.efficiency_64, a.efficiency_128, a.masked_factor, a.masked_keys, a.saturation_keys, a.imbalance,
            a.launch);
  }
  return profile;
}

}  // namespace ulysim::calibration
