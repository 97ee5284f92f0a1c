#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit.h"
#include "calibration/samples/sample.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/gpu.h"
#include "hw_models/spec/sourced.h"

/// The parts of fit_profile; nothing outside this folder uses them.
namespace ulysim::calibration {

using SampleList = std::vector<const Sample*>;

/// The kernels of samples, taken out once: a fit evaluates them hundreds of times.
class TimedKernels {
 public:
  explicit TimedKernels(const SampleList& samples);
  /// log(predicted / measured) of every sample, in order.
  [[nodiscard]] std::vector<double> log_ratios(const spec::Gpu& gpu, const cost::KernelProfile& profile,
                                               const Circumstances& circumstances = {}) const;

 private:
  struct Timed {
    const Sample* sample{};
    std::vector<kernel::Kernel> kernels{};
  };
  std::vector<Timed> timed_;
};

/// Samples whose source does not say are bursts: that is what benchmarks run.
[[nodiscard]] bool is_sustained(const Sample& sample);
/// Whether the source says so.
[[nodiscard]] bool is_burst(const Sample& sample);
[[nodiscard]] bool has_host_gap(const Sample& sample);

/// GEMM parameters from GEMM samples; launches and bandwidth as `profile` has them where they do not come from here.
/// `sustained` stays as it is where no sample tells of it and it has a source.
[[nodiscard]] Covariance fit_gemm(const SampleList& samples, const spec::Gpu& gpu, cost::KernelProfile& profile);

/// Entries of all implementations, in the order of their enumeration, forward before backward. One without forward
/// samples keeps the entries that `profile` has of it, or stands as flash-attention-2 (the first one fitted without).
struct AttentionFit {
  std::vector<Covariance> covariances{};
  CircumstancesOf circumstances{};
};
[[nodiscard]] AttentionFit fit_attention(const SampleList& samples, const spec::Gpu& gpu, cost::KernelProfile& profile);
[[nodiscard]] bool has_forward(const SampleList& attention);

/// Launch and share of the bandwidth from copies within a GPU's memory.
[[nodiscard]] Covariance fit_memory_bound(const SampleList& samples, const spec::Gpu& gpu,
                                          cost::KernelProfile& profile);

/// The fit of a catalogue GPU calls its samples published; those of one's own were measured.
void call_measured(cost::GemmProfile& gemm);
void call_measured(cost::AttentionProfile& entry);

/// Four significant digits, so that a profile's text is short and reads back to the same number.
[[nodiscard]] double rounded(double value);

/// "fit of 12 samples: A; B", `assumed` when some were measured on another GPU than `name`.
[[nodiscard]] spec::Sourced<double> fitted_value(double value, const SampleList& samples, const std::string& name);

[[nodiscard]] spec::Sourced<double> assumed_value(double value, const std::string& why);

/// One sigma of log(predicted/measured), from the median absolute value (1.4826 for a normal distribution).
[[nodiscard]] double robust_sigma(std::vector<double> residuals);

/// Weights 1/√n for each of the n rows of a source: rows of one source err together, so its total weight grows
/// as √n and no long table outvotes all others.
[[nodiscard]] std::vector<double> weights_by_source(const SampleList& samples);

}  // namespace ulysim::calibration
