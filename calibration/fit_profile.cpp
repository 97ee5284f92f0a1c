#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "calibration/fit.h"
#include "calibration/fit_parts.h"
#include "calibration/least_squares.h"
#include "calibration/samples/statistics.h"
#include "calibration/samples/table.h"
#include "hw_models/cost/roofline.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

constexpr int kDigits = 4;
constexpr double kNormalSigmaOverMedian = 1.4826;
constexpr double kBandwidthEfficiency = 0.854;  // 1328 / 1555
constexpr double kBandwidthSpread = 0.05;

/// By what they tell of.
struct Sorted {
  SampleList gemm{};
  SampleList attention{};
  SampleList copies{};
};

Sorted sorted(std::span<const Sample> samples) {
  Sorted result;
  for (const Sample& sample : samples) {
    if (std::holds_alternative<GemmProbe>(sample.probe)) {
      result.gemm.push_back(&sample);
    } else if (std::holds_alternative<AttentionProbe>(sample.probe)) {
      result.attention.push_back(&sample);
    } else if (std::holds_alternative<CopyProbe>(sample.probe) && !kernels_of(sample.probe).empty()) {
      result.copies.push_back(&sample);
    }
  }
  return result;
}

[[noreturn]] void refuse(const std::string& name, std::string message) {
  throw InputError({{.where = {.file = name}, .message = std::move(message)}});
}

cost::MemoryBoundProfile memory_bound() {
  auto efficiency = assumed_value(
      kBandwidthEfficiency, "FlagOpen FlagPerf main_memory-bandwidth: A100-40GB reaches 1328 of 1555 GB/s; as there");
  efficiency.spread = kBandwidthSpread;
  return {.bandwidth_efficiency = efficiency};
}

template <class... T>
void relabel_published(T&... values) {
  ((values.kind = values.kind == spec::SourceKind::published ? spec::SourceKind::measured : values.kind), ...);
}

}  // namespace

TimedKernels::TimedKernels(const SampleList& samples) {
  for (const Sample* sample : samples) {
    timed_.push_back({.sample = sample, .kernels = kernels_of(sample->probe)});
  }
}

std::vector<double> TimedKernels::log_ratios(const spec::Gpu& gpu, const cost::KernelProfile& profile,
                                             const Circumstances& circumstances) const {
  cost::KernelProfile of_bursts = profile;
  of_bursts.attention_sustained.value *= circumstances.burst_gain;
  std::vector<double> ratios;
  ratios.reserve(timed_.size());
  for (const Timed& timed : timed_) {
    double total = has_host_gap(*timed.sample) ? circumstances.host_gap : 0.0;
    for (const kernel::Kernel& kernel : timed.kernels) {
      total += cost::kernel_seconds(kernel, gpu, is_burst(*timed.sample) ? of_bursts : profile);
    }
    ratios.push_back(std::log(total / timed.sample->seconds));
  }
  return ratios;
}

bool is_sustained(const Sample& sample) {
  return sample.regime == Regime::sustained;
}
bool is_burst(const Sample& sample) {
  return sample.regime == Regime::burst;
}
bool has_host_gap(const Sample& sample) {
  const auto* attention = std::get_if<AttentionProbe>(&sample.probe);
  return attention != nullptr && attention->pass == Pass::forward_host_gap;
}

double rounded(double value) {
  return rounded(value, kDigits);
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

void call_measured(cost::GemmProfile& gemm) {
  relabel_published(gemm.efficiency, gemm.tile_m, gemm.tile_n, gemm.wave_quantisation, gemm.k_overhead, gemm.launch,
                    gemm.sustained);
}

void call_measured(cost::AttentionProfile& a) {
  relabel_published(a.efficiency_64, a.efficiency_128, a.masked_factor, a.masked_keys, a.saturation_keys, a.imbalance,
                    a.launch);
}

Covariance fit_memory_bound(const SampleList& samples, const spec::Gpu& gpu, cost::KernelProfile& profile) {
  std::vector<LinearRow> rows;
  for (const Sample* sample : samples) {
    const auto kernels = kernels_of(sample->probe);
    const auto bytes = static_cast<double>(traffic(kernels.front()).value());
    rows.push_back({.features = {1.0, bytes / gpu.memory_bandwidth.value.value()}, .target = sample->seconds});
  }
  const Estimate estimate = non_negative_least_squares(rows);
  if (estimate.values[1] <= 0.0) {
    refuse(profile.name, "the times of the copies do not grow with their sizes");
  }
  profile.memory_bound.bandwidth_efficiency =
      fitted_value(rounded(std::min(1.0, 1.0 / estimate.values[1])), samples, profile.name);
  constexpr Duration kLeast(1000);  // what a profile's file takes
  profile.memory_bound.launch = {
      .value = std::max(kLeast, duration_from_seconds(rounded(estimate.values[0]), "the launch of a copy")),
      .source = profile.memory_bound.bandwidth_efficiency.source,
      .kind = profile.memory_bound.bandwidth_efficiency.kind};
  return {.part = "memory bound",
          .parameters = {"launch s", "1 / bandwidth_efficiency"},
          .values = estimate.values,
          .matrix = estimate.covariance};
}

std::vector<Sample> catalog_samples(const std::filesystem::path& catalog_dir, const std::string& name) {
  const auto file = [&](const char* kind) { return catalog_dir / "samples" / fmt::format("{}-{}.csv", name, kind); };
  std::vector<Sample> samples;
  for (const char* kind : {"gemm", "attention", "collectives"}) {
    if (kind == std::string_view("collectives") && !std::filesystem::exists(file(kind))) {
      continue;
    }
    std::vector<Sample> own = load_samples(file(kind));
    std::move(own.begin(), own.end(), std::back_inserter(samples));
  }
  return samples;
}

ProfileFit fit_profile(std::span<const Sample> samples, const spec::Gpu& gpu) {
  const Sorted by_kind = sorted(samples);
  ProfileFit fit{.profile = {.name = gpu.kernel_profile.empty() ? gpu.name : gpu.kernel_profile}};
  cost::KernelProfile& profile = fit.profile;
  if (by_kind.gemm.empty() || !has_forward(by_kind.attention)) {
    refuse(profile.name, "a fit needs GEMM samples and forward samples of an attention kernel");
  }
  profile.summary =
      fmt::format("fit of {} GEMM and {} attention samples", by_kind.gemm.size(), by_kind.attention.size());
  profile.attention_sustained = {
      .value = 1.0,
      .source =
          "runs of a second (AI_analysis, H100 FlashAttention-2) are as fast as short ones; UPipe arXiv "
          "2602.21196 holds 598-630 TFLOP/s over whole steps",
      .kind = spec::SourceKind::published};
  profile.memory_bound = memory_bound();
  fit.covariances.push_back(fit_gemm(by_kind.gemm, gpu, profile));
  profile.memory_bound.launch = {
      .value = profile.gemm.launch.value, .source = "as the launch of a GEMM", .kind = spec::SourceKind::assumed};
  AttentionFit attention = fit_attention(by_kind.attention, gpu, profile);
  std::move(attention.covariances.begin(), attention.covariances.end(), std::back_inserter(fit.covariances));
  fit.circumstances = std::move(attention.circumstances);
  return fit;
}

ProfileFit refit_profile(std::span<const Sample> samples, const spec::Gpu& gpu, const cost::KernelProfile& base) {
  ProfileFit fit{.profile = base};
  cost::KernelProfile& profile = fit.profile;
  profile.name = gpu.name;
  std::vector<Sample> own(samples.begin(), samples.end());
  for (Sample& sample : own) {
    sample.gpu = profile.name;
  }
  const Sorted by_kind = sorted(own);
  std::vector<std::string> parts;
  if (!by_kind.gemm.empty()) {
    fit.covariances.push_back(fit_gemm(by_kind.gemm, gpu, profile));
    call_measured(profile.gemm);
    parts.push_back(fmt::format("{} GEMM", by_kind.gemm.size()));
  }
  if (has_forward(by_kind.attention)) {
    AttentionFit attention = fit_attention(by_kind.attention, gpu, profile);
    fit.circumstances = std::move(attention.circumstances);
    for (Covariance& covariance : attention.covariances) {
      for (cost::AttentionProfile& entry : profile.attention) {
        if (cost::name_of(entry.implementation) == covariance.part) {
          call_measured(entry);
        }
      }
      fit.covariances.push_back(std::move(covariance));
    }
    parts.push_back(fmt::format("{} attention", by_kind.attention.size()));
  }
  if (!by_kind.copies.empty()) {
    fit.covariances.push_back(fit_memory_bound(by_kind.copies, gpu, profile));
    relabel_published(profile.memory_bound.bandwidth_efficiency, profile.memory_bound.launch);
    parts.push_back(fmt::format("{} copy", by_kind.copies.size()));
  }
  if (parts.empty()) {
    refuse(profile.name, "no samples of GEMMs, of attention forward or of copies within a GPU");
  }
  profile.summary = fmt::format("fit of {} samples of one's own; the rest as {}", fmt::join(parts, ", "), base.name);
  return fit;
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
