// What is fitted and scored together: a GPU's kernels, its collectives, samples of one's own.

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "calibration/fit_parts.h"
#include "calibration/fit_report.h"
#include "hw_models/cost/roofline.h"

namespace ulysim::calibration {
namespace {

constexpr int kFolds = 5;
constexpr std::int64_t kShort = 8192;
constexpr std::int64_t kLong = 16384;

template <class T>
void append(std::vector<T>& to, std::vector<T> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

/// Whether a fit to the shorter half is possible and something longer is there to score.
bool reaches(std::span<const Sample> samples, std::int64_t queries) {
  bool gemm = false;
  bool shorter = false;
  bool longer = false;
  for (const Sample& sample : samples) {
    const auto* attention = std::get_if<AttentionProbe>(&sample.probe);
    gemm = gemm || std::holds_alternative<GemmProbe>(sample.probe);
    shorter = shorter || (attention != nullptr && attention->queries < queries && attention->pass != Pass::backward);
    longer = longer || (attention != nullptr && attention->queries >= queries);
  }
  return gemm && shorter && longer;
}

struct Split {
  std::vector<Sample> kernels{};  ///< what a profile tells of
  std::vector<Sample> others{};
};

Split split(std::span<const Sample> samples) {
  Split result;
  std::partition_copy(samples.begin(), samples.end(), std::back_inserter(result.kernels),
                      std::back_inserter(result.others),
                      [](const Sample& sample) { return !kernels_of(sample.probe).empty(); });
  return result;
}

}  // namespace

double predicted_seconds(const Sample& sample, const spec::Gpu& gpu, const cost::KernelProfile& profile,
                         const CircumstancesOf& circumstances) {
  cost::KernelProfile regime = profile;
  if (!is_sustained(sample)) {
    regime.gemm.sustained.value = 1.0;
  }
  double total = 0.0;
  const auto* attention = std::get_if<AttentionProbe>(&sample.probe);
  if (attention != nullptr && circumstances.contains(attention->implementation)) {
    const Circumstances& around = circumstances.at(attention->implementation);
    total += has_host_gap(sample) ? around.host_gap : 0.0;
    regime.attention_sustained.value *= is_burst(sample) ? around.burst_gain : 1.0;
  }
  for (const kernel::Kernel& kernel : kernels_of(sample.probe)) {
    total += cost::kernel_seconds(kernel, gpu, regime);
  }
  return total;
}

Fitter kernel_fitter(const spec::Gpu& gpu) {
  return [gpu](std::span<const Sample> samples) -> Predictor {
    return [gpu, fit = fit_profile(samples, gpu)](const Sample& sample) {
      return std::optional(predicted_seconds(sample, gpu, fit.profile, fit.circumstances));
    };
  };
}

Fitter refitter(const spec::Gpu& gpu, const cost::KernelProfile& base) {
  return [gpu, base](std::span<const Sample> samples) -> Predictor {
    return [gpu, fit = refit_profile(samples, gpu, base)](const Sample& sample) {
      return std::optional(predicted_seconds(sample, gpu, fit.profile, fit.circumstances));
    };
  };
}

Fitter collective_fitter() {
  return [](std::span<const Sample> samples) -> Predictor {
    return [curves = fit_collectives(samples)](const Sample& sample) { return predicted_seconds(sample, curves); };
  };
}

void add(FitReport from, FitReport& report) {
  append(report.groups, std::move(from.groups));
  append(report.residuals, std::move(from.residuals));
}

FitReport assess_gpu(std::span<const Sample> samples, const spec::Gpu& gpu) {
  const auto [kernels, others] = split(samples);
  const ProfileFit fit = fit_profile(kernels, gpu);
  FitReport report = assess(kernels, kernel_fitter(gpu), kFolds);
  report.name = gpu.name;
  report.parameters = parameters_of(fit.profile);
  report.covariances = fit.covariances;
  // What was measured on another GPU tells of none of this one's lengths.
  std::vector<Sample> own = kernels;
  std::erase_if(own, [&](const Sample& sample) { return sample.gpu != fit.profile.name; });
  if (reaches(own, kLong)) {
    append(report.groups, assess_extrapolation(own, kernel_fitter(gpu), kShort, kLong));
  }
  add_collectives(others, spec::SourceKind::published, report);
  return report;
}

FitReport assess_own(std::span<const Sample> samples, const spec::Gpu& gpu, const cost::KernelProfile& base) {
  const auto [kernels, others] = split(samples);
  FitReport report;
  if (!kernels.empty()) {
    const ProfileFit fit = refit_profile(kernels, gpu, base);
    report = assess(kernels, refitter(gpu, base), kFolds);
    report.parameters = parameters_of(fit.profile);
    report.covariances = fit.covariances;
    append(report.groups, assess_extrapolation(kernels, refitter(gpu, base), kShort, kLong));
  }
  report.name = gpu.name;
  add_collectives(others, spec::SourceKind::measured, report);
  return report;
}

void add_collectives(std::span<const Sample> samples, spec::SourceKind kind, FitReport& report) {
  const std::vector<CollectiveCurve> curves = fit_collectives(samples);
  if (curves.empty()) {
    return;
  }
  FitReport collectives = assess(samples, collective_fitter(), 2);
  collectives.groups.push_back(over_all("all collectives", collectives.residuals));
  add(std::move(collectives), report);
  append(report.parameters, parameters_of(curves, kind));
  for (const CollectiveCurve& curve : curves) {
    report.covariances.push_back(covariance_of(curve));
  }
}

}  // namespace ulysim::calibration
