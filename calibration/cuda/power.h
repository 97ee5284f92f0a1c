#pragma once

#include "calibration/backend.h"
#include "calibration/cuda/cuda_device.h"

namespace ulysim::calibration::cuda {

/// Clock and power of a GPU as its driver tells them, through NVML, which comes with the driver and is looked for when
/// the program runs. Says nothing where it is missing.
class PowerReader {
 public:
  explicit PowerReader(const GpuFacts& gpu);
  PowerReader(const PowerReader&) = delete;
  PowerReader& operator=(const PowerReader&) = delete;
  ~PowerReader();
  [[nodiscard]] PowerState read() const;

 private:
  void* library_{};
  void* device_{};
};

}  // namespace ulysim::calibration::cuda
