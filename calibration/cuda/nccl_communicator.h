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

/// Memory on every member's GPU that all ranks registered as one window; given back at the end of its life, which all
/// processes must reach together.
class SymmetricBuffers {
 public:
  SymmetricBuffers() = default;
  SymmetricBuffers(const SymmetricBuffers&) = delete;
  SymmetricBuffers& operator=(const SymmetricBuffers&) = delete;
  virtual ~SymmetricBuffers() = default;
  /// Of member number `m` of this process.
  [[nodiscard]] virtual void* at(std::size_t m) const = 0;
};

/// Communicator over NCCL, and what timing needs beyond it. Contract as there.
/// Throws WorldError with NCCL's own message.
class NcclCommunicator : public Communicator {
 public:
  /// As all_to_all(), by grouped sends and receives: what older libraries and frameworks do.
  virtual void all_to_all_grouped(std::span<const Transfer> transfers, std::int64_t bytes_per_peer) = 0;
  /// On `bytes` for each member, for all_to_all_symmetric(). All processes call this with as many bytes. Throws
  /// std::runtime_error where NCCL is older than 2.28 or the GPUs cannot map each other's memory.
  [[nodiscard]] virtual std::unique_ptr<SymmetricBuffers> allocate_symmetric(std::int64_t bytes) = 0;
  /// As all_to_all(), of symmetric memory at equal offsets, without kernels where NCCL can: the copy engines move the
  /// data and leave the multiprocessors alone (NCCL_CTA_POLICY_ZERO).
  virtual void all_to_all_symmetric(std::span<const Transfer> transfers, std::int64_t bytes_per_peer) = 0;
  /// Of bf16, summed.
  virtual void all_reduce(std::span<const Transfer> transfers, std::int64_t elements) = 0;
  /// Element by element the largest over all processes. Waits.
  [[nodiscard]] virtual std::vector<double> largest(std::vector<double> values) = 0;
  /// What rank 0 has, on every process. Waits.
  virtual void from_rank_zero(std::span<std::byte> bytes) = 0;
};

/// What rank 0 must give to every process before make_nccl(). Works without a GPU.
[[nodiscard]] std::vector<std::byte> nccl_unique_id();

/// All processes call this with the same id and world. One GPU per process, or several (--local-gpus).
[[nodiscard]] std::unique_ptr<NcclCommunicator> make_nccl(std::span<const std::byte> id, int world,
                                                          std::vector<NcclMember> members);

/// `2.28.9`.
[[nodiscard]] std::string nccl_version();

}  // namespace ulysim::calibration::cuda
