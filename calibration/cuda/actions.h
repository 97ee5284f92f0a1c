#pragma once

#include <vector>

#include "calibration/cuda/cuda_device.h"
#include "calibration/cuda/options.h"

namespace ulysim::calibration::cuda {

// As ulysim's own: 2 for what the user or the machine must change, 1 for what failed on the way, 70 for our bugs.
constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kRefused = 2;
constexpr int kBug = 70;

/// Tells on standard error the exception that is being handled; returns the exit code.
[[nodiscard]] int explain_failure();

/// Each returns the exit code: 0 done, 1 a check failed.
[[nodiscard]] int check_results(const GpuFacts& gpu);
[[nodiscard]] int show_plans(const Options& options);
[[nodiscard]] int run_measurements(const std::vector<GpuFacts>& gpus, const Options& options);

}  // namespace ulysim::calibration::cuda
