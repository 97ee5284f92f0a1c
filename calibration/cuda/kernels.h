#pragma once

#include "calibration/cuda/work.h"

struct CUstream_st;

namespace ulysim::calibration::cuda {

/// Runs every item of `work` on the current device, in `stream`. Returns cudaError_t as a number.
[[nodiscard]] int launch_kernel(const Work& work, CUstream_st* stream);

}  // namespace ulysim::calibration::cuda
