#pragma once

#include <memory>
#include <string>

#include "calibration/cuda/cuda_device.h"

namespace ulysim::calibration::cuda {

/// cuDNN's fused attention on `device`. Plans are made on the first use of a shape and kept.
[[nodiscard]] std::unique_ptr<LocalAttention> make_cudnn_attention(CudaDevice& device);

/// `9.19.0`.
[[nodiscard]] std::string cudnn_version();

}  // namespace ulysim::calibration::cuda
