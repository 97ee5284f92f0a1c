#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/fit_report.h"
#include "hw_models/cost/kernel_profile.h"

namespace ulysim::calibration {

/// A file of a catalogue, or of measurements to validate against: "gpus/NAME.yaml".
struct WrittenFile {
  std::string path{};
  std::string text{};
};

/// What `ulysim calibrate fit` prints and writes.
struct FitOutput {
  std::vector<WrittenFile> files{};   ///< the kernel profile last
  std::optional<FitReport> report{};  ///< absent where nothing was fitted
  std::string summary{};              ///< printed before the report
};

/// Fits the GPU `gpu_name` of the catalogue to the samples that the catalogue has of it. "generic" is made from the
/// shipped h100-sxm profile. Throws InputError when the GPU, its samples or enough of them are missing.
[[nodiscard]] FitOutput run_fit(const std::filesystem::path& catalog_dir, const std::string& gpu_name);

/// Fits `samples` of one's own, whoever measured or imported them. A GPU of the catalogue keeps of its profile what
/// they do not tell; any other name is a machine whose GPU, node and profile are made from them (fit_cluster.h).
[[nodiscard]] FitOutput run_fit(const std::filesystem::path& catalog_dir, const std::string& name,
                                std::span<const Sample> samples);

/// What `ulysim calibrate show` prints: every parameter with value, spread, kind and source.
[[nodiscard]] std::string show(const cost::KernelProfile& profile);

}  // namespace ulysim::calibration
