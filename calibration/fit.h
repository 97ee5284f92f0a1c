#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/samples.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/gpu.h"

namespace ulysim::calibration {

/// Finds the parameters of the roofline cost model (hw_models/cost) that reproduce the samples of a GPU.
/// The profile is named after `gpu.kernel_profile` (or the GPU). Parameters without samples are filled by stated
/// assumptions, kind `assumed`; so are those whose samples come from another GPU. Values are rounded to four digits.
/// Deterministic. Needs GEMM samples and flash-attention-2 forward samples; InputError without.
[[nodiscard]] cost::KernelProfile fit_profile(std::span<const Sample> samples, const spec::Gpu& gpu);

/// The profile for a GPU without samples: the fractions of another one's profile, all `assumed`.
[[nodiscard]] cost::KernelProfile generic_profile(const cost::KernelProfile& from);

/// |predicted - measured| / measured over one group of samples.
struct Errors {
  std::size_t samples{};
  double median{};
  double p90{};
};

struct GroupErrors {
  std::string group{};  ///< "gemm >= 10 GFLOP", "cudnn backward d128"
  Errors fitted{};      ///< by the fit to all samples
  Errors held_out{};    ///< each half predicted by a fit to the other; halves split by shape family, seeded
};

struct FitReport {
  std::vector<GroupErrors> groups{};
};

[[nodiscard]] FitReport assess_fit(std::span<const Sample> samples, const spec::Gpu& gpu);
[[nodiscard]] std::string to_text(const FitReport& report);

/// What the profile predicts for a sample, in seconds; a GEMM burst without the sustained factor.
[[nodiscard]] double predicted_seconds(const Sample& sample, const spec::Gpu& gpu, const cost::KernelProfile& profile);

}  // namespace ulysim::calibration
