#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/fit.h"
#include "calibration/fit_collectives.h"

namespace ulysim::calibration {

/// One parameter as a report prints it.
struct Parameter {
  std::string part{};  ///< "gemm", "cudnn backward", "all_to_all over NVSwitch NVLink4"
  std::string name{};
  double value{};
  std::string unit{};  ///< "us", "GB/s"; empty of a fraction
  std::string source{};
  std::string kind{};              ///< datasheet, published, measured, assumed
  std::optional<double> spread{};  ///< relative, one sigma, of what it predicts
};

/// One sample against the fit, in `unit`: TFLOP/s or GFLOP/s, GB/s of bus bandwidth, or milliseconds.
struct Residual {
  std::string group{};
  std::string label{};
  double measured{};
  double fitted{};
  std::optional<double> held_out{};  ///< by the fit that has not seen the sample's family
  std::string unit{};
};

/// |predicted − measured| / measured of the time, over one group of samples.
struct GroupErrors {
  std::string name{};  ///< "gemm >= 10 GFLOP", "cudnn backward d128", "all_to_all"
  std::size_t points{};
  double median{};
  double p90{};
  double worst{};
  std::optional<double> held_out_median{};  ///< cross-validated; absent where nothing could be held out
  std::optional<double> held_out_p90{};
};

struct FitReport {
  std::string name{};  ///< of the GPU or machine
  std::vector<Parameter> parameters{};
  std::vector<Covariance> covariances{};
  std::vector<GroupErrors> groups{};
  std::vector<Residual> residuals{};
};

/// Seconds; nothing for a sample that the fit does not reach.
using Predictor = std::function<std::optional<double>(const Sample&)>;
/// InputError where the samples are too few.
using Fitter = std::function<Predictor(std::span<const Sample>)>;

/// Fits all samples, and scores them by group. Then families (a GEMM's N and K, an attention kernel's heads and mask, a
/// sweep of a collective) are dealt into `folds` parts by a seeded draw, group by group, and each part is predicted by
/// a fit to the others: whole families are held out, as neighbours in one family resemble each other.
[[nodiscard]] FitReport assess(std::span<const Sample> samples, const Fitter& fitter, int folds);

/// Of all residuals together.
[[nodiscard]] GroupErrors over_all(const std::string& name, std::span<const Residual> residuals);

/// Attention of `from` queries or more, predicted by a fit that has seen none longer than `up_to`: one group a
/// direction, "attention forward >= 16K, from <= 8K", and its bursts and sustained samples apart where it has both:
/// if nothing short ran for long, no fit to it can tell what is sustained.
[[nodiscard]] std::vector<GroupErrors> assess_extrapolation(std::span<const Sample> samples, const Fitter& fitter,
                                                            std::int64_t up_to, std::int64_t from);

[[nodiscard]] Fitter kernel_fitter(const spec::Gpu& gpu);
[[nodiscard]] Fitter refitter(const spec::Gpu& gpu, const cost::KernelProfile& base);
[[nodiscard]] Fitter collective_fitter();

/// Every parameter of a profile.
[[nodiscard]] std::vector<Parameter> parameters_of(const cost::KernelProfile& profile);
/// `kind`: published or measured, as their samples are.
[[nodiscard]] std::vector<Parameter> parameters_of(std::span<const CollectiveCurve> curves, spec::SourceKind kind);

[[nodiscard]] Covariance covariance_of(const CollectiveCurve& curve);

/// Appends the curves of the collectives among the samples: half of the sweeps predicted by the other half, and back.
void add_collectives(std::span<const Sample> samples, spec::SourceKind kind, FitReport& report);

/// Appends the groups and residuals of one report to another.
void add(FitReport from, FitReport& report);

/// Kernels and collectives of one GPU with their parameters, covariances and both kinds of held-out error.
[[nodiscard]] FitReport assess_gpu(std::span<const Sample> samples, const spec::Gpu& gpu);

/// The same of samples of one's own, of which the GPU's other parameters come from `base` (refit_profile).
[[nodiscard]] FitReport assess_own(std::span<const Sample> samples, const spec::Gpu& gpu,
                                   const cost::KernelProfile& base);

/// Errors by group, the samples that the fit misses most, standard errors and strong correlations.
[[nodiscard]] std::string to_text(const FitReport& report);
/// A `fit` result.
[[nodiscard]] std::string to_json(const FitReport& report);

}  // namespace ulysim::calibration
