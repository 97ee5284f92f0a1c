#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/samples.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/gpu.h"
#include "hw_models/spec/sourced.h"

/// The parts of fit_profile; nothing outside this folder uses them.
namespace ulysim::calibration {

using SampleList = std::vector<const Sample*>;

/// GEMM parameters from GEMM samples; launches and bandwidth as `profile` has them where they do not come from here.
void fit_gemm(const SampleList& samples, const spec::Gpu& gpu, cost::KernelProfile& profile);

/// Entries of all implementations, in the order of their enumeration, forward before backward.
void fit_attention(const SampleList& samples, const spec::Gpu& gpu, cost::KernelProfile& profile);

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
