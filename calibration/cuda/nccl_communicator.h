#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calibration/cuda/communicator.h"
#include "calibration/cuda/cuda_device.h"

namespace ulysim::calibration::cuda {

/// A rank of this process and its GPU. Two ranks on one GPU are refused by NCCL.
struct NcclMember {
  int rank{};
  CudaDevice* device{};
};

/// Communicator over NCCL, and what timing needs beyond it. Contract as there.
/// Throws WorldError with NCCL's own message.
class NcclCommunicator : public Communicator {
 public:
  /// As all_to_all(), by grouped sends and receives: what older libraries and frameworks do.
  virtual void all_to_all_grouped(std::span<const Transfer> transfers, std::int64_t bytes_per_peer) = 0;
  /// Of bf16, summed.
  virtual void all_reduce(std::span<const Transfer> transfers, std::int64_t elements) = 0;
  /// Element by element the largest over all processes. Waits.
  [[nodiscard]] virtual std::vector<double> largest(std::vector<double> values) = 0;
};

/// What rank 0 must give to every process before make_nccl(). Works without a GPU.
[[nodiscard]] std::vector<std::byte> nccl_unique_id();

/// All processes call this with the same id and world. One GPU per process, or several (--local-gpus).
[[nodiscard]] std::unique_ptr<NcclCommunicator> make_nccl(std::span<const std::byte> id, int world,
                                                          std::vector<NcclMember> members);

/// `2.28.9`.
[[nodiscard]] std::string nccl_version();

}  // namespace ulysim::calibration::cuda
