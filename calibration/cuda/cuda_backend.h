#pragma once

#include <memory>
#include <string>

#include "calibration/backend.h"
#include "calibration/cuda/measure.h"

namespace ulysim::calibration::cuda {

/// What the samples say of where they come from.
struct CudaIdentity {
  std::string fabric{};    ///< "one node", "several nodes"; empty for one GPU
  std::string software{};  ///< driver and libraries with their versions
};

/// GPUs of one or more processes. Rank 0's process measures; the others do what it asks for until it is destroyed.
/// The rig must outlive it.
[[nodiscard]] std::unique_ptr<Backend> make_cuda_backend(const Rig& rig, CudaIdentity identity);

/// What a process without rank 0 does: the same work at the same time, until rank 0's backend is gone.
void follow(const Rig& rig);

}  // namespace ulysim::calibration::cuda
