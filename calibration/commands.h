#pragma once

#include <filesystem>
#include <string>

#include "hw_models/cost/kernel_profile.h"

namespace ulysim::calibration {

/// What `ulysim calibrate fit` prints and writes.
struct FitOutput {
  std::string profile_name{};  ///< goes to catalog/kernels/NAME.yaml
  std::string profile_yaml_text{};
  std::string report_text{};
};

/// Fits the GPU `gpu_name` of the catalogue to catalog/samples/PROFILE-{gemm,attention}.csv, PROFILE being the
/// GPU's kernel_profile (its name when it has none). "generic" is made from the shipped h100-sxm profile.
/// Throws InputError when the GPU, its samples or enough of them are missing.
[[nodiscard]] FitOutput run_fit(const std::filesystem::path& catalog_dir, const std::string& gpu_name);

/// What `ulysim calibrate show` prints: every parameter with value, spread, kind and source.
[[nodiscard]] std::string show(const cost::KernelProfile& profile);

}  // namespace ulysim::calibration
