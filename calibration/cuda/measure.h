#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "calibration/cuda/nccl_communicator.h"
#include "calibration/samples/probe.h"

namespace ulysim::calibration::cuda {

/// What is measured on: the ranks that this process drives. `communicator` is there also for one rank.
struct Rig {
  std::vector<CudaDevice*> devices{};
  std::vector<Member> members{};  ///< beside devices, one by one; attention is cuDNN's
  NcclCommunicator* communicator{};
};

/// Gives one iteration to the lanes of every device of the rig. The argument counts iterations: buffers are rotated by
/// it, so that the cache does not serve what memory would have to.
using Iteration = std::function<void(std::int64_t)>;

/// Seconds of one iteration in each of `batches` batches after `warm_up` iterations; a batch is as slow as its slowest
/// rank, and long enough for the clock. All ranks must call this at the same place.
[[nodiscard]] std::vector<double> time_batches(const Rig& rig, const Iteration& iteration, int warm_up, int batches);

/// Buffers and plans for a probe. All ranks must call this at the same place. Throws std::runtime_error where a library
/// refuses the shape or memory is too small.
[[nodiscard]] Iteration prepare(const Rig& rig, const GemmProbe& probe);
[[nodiscard]] Iteration prepare(const Rig& rig, const AttentionProbe& probe);
[[nodiscard]] Iteration prepare(const Rig& rig, const CopyProbe& probe);
[[nodiscard]] Iteration prepare(const Rig& rig, const CollectiveProbe& probe);
[[nodiscard]] Iteration prepare(const Rig& rig, const LayerProbe& probe);

/// ‖result − reference‖ / ‖reference‖ of this process' ranks: 0 where bytes are only moved, and moved right.
[[nodiscard]] double verify(const Rig& rig, const GemmProbe& probe);
[[nodiscard]] double verify(const Rig& rig, const AttentionProbe& probe);
[[nodiscard]] double verify(const Rig& rig, const CopyProbe& probe);
[[nodiscard]] double verify(const Rig& rig, const CollectiveProbe& probe);
[[nodiscard]] double verify(const Rig& rig, const LayerProbe& probe);

/// Buffers of the same size on every device of a rig, as many as it takes to be more than twice the cache; filled with
/// random bf16 numbers between −1 and 1 (data of zeros make a GPU faster than it is).
class RotatingBuffers {
 public:
  RotatingBuffers(const Rig& rig, std::int64_t bytes, std::int64_t bytes_of_iteration);
  /// Of device number `m`, for this iteration.
  template <class T>
  [[nodiscard]] T* at(std::size_t m, std::int64_t iteration) const {
    return buffers_[m][static_cast<std::size_t>(iteration) % buffers_[m].size()].template as<T>();
  }

 private:
  std::vector<std::vector<Buffer>> buffers_;
};

}  // namespace ulysim::calibration::cuda
