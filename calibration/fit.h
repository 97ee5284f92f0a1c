#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "calibration/samples/sample.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/gpu.h"

namespace ulysim::calibration {

/// How sure a fit is of parameters that it found together. Row by row, in the units of the parameters.
struct Covariance {
  std::string part{};  ///< "gemm", "cudnn"
  std::vector<std::string> parameters{};
  std::vector<double> values{};
  std::vector<double> matrix{};
};

/// What the times of an attention kernel's samples hold that the kernel of a training step has not.
struct Circumstances {
  double host_gap{};       ///< seconds, of Pass::forward_host_gap
  double burst_gain{1.0};  ///< rate of samples that are bursts over that of sustained ones
};
using CircumstancesOf = std::map<kernel::AttentionKernel, Circumstances>;

struct ProfileFit {
  cost::KernelProfile profile{};
  std::vector<Covariance> covariances{};
  CircumstancesOf circumstances{};  ///< of those that were fitted
};

/// Finds the parameters of the roofline cost model (hw_models/cost) that reproduce the samples of a GPU.
/// The profile is named after `gpu.kernel_profile` (or the GPU). Parameters without samples are filled by stated
/// assumptions, kind `assumed`; so are those whose samples come from another GPU. Values are rounded to four digits.
/// Deterministic. Needs GEMM samples and forward samples of an attention kernel; InputError without.
[[nodiscard]] ProfileFit fit_profile(std::span<const Sample> samples, const spec::Gpu& gpu);

/// The same from samples of one's own: GEMM, attention kernels and copies that they tell of are fitted, kind
/// `measured`; what they do not tell stays as `base` has it. Needs samples of one of the three; InputError without.
[[nodiscard]] ProfileFit refit_profile(std::span<const Sample> samples, const spec::Gpu& gpu,
                                       const cost::KernelProfile& base);

/// The profile for a GPU without samples: the fractions of another one's profile, all `assumed`.
[[nodiscard]] cost::KernelProfile generic_profile(const cost::KernelProfile& from);

/// What the profile predicts for a sample of kernels, in seconds; a GEMM burst without the sustained factor.
[[nodiscard]] double predicted_seconds(const Sample& sample, const spec::Gpu& gpu, const cost::KernelProfile& profile,
                                       const CircumstancesOf& circumstances = {});

/// What a catalogue holds of a GPU: `catalog_dir`/samples/NAME-gemm.csv and -attention.csv, and -collectives.csv of one
/// node where there is one.
[[nodiscard]] std::vector<Sample> catalog_samples(const std::filesystem::path& catalog_dir, const std::string& name);

}  // namespace ulysim::calibration
