#pragma once

#include <vector>

#include "calibration/cuda/cuda_device.h"
#include "calibration/cuda/options.h"

namespace ulysim::calibration::cuda {

/// Each returns the exit code: 0 done, 1 a check failed.
[[nodiscard]] int check_results(const GpuFacts& gpu);
[[nodiscard]] int show_plans(const Options& options);
[[nodiscard]] int run_measurements(const std::vector<GpuFacts>& gpus, const Options& options);

}  // namespace ulysim::calibration::cuda
