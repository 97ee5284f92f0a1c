#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "calibration/cuda/device.h"

namespace ulysim::calibration::cuda {

/// A rank that this process drives: one per process under a launcher, several with --local-gpus, all of them (on one
/// device) in the check of results.
struct Member {
  int rank{};
  Device* device{};
  LocalAttention* attention{};
};

struct Transfer {
  const void* send{};
  void* receive{};
};

/// Collectives over all ranks. One Transfer per member of this process, in the order of the members.
/// Contract: runs on Lane::exchange of every member; the caller orders lanes; send and receive do not overlap.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int world() const = 0;
  /// send and receive are [world][bytes_per_peer].
  virtual void all_to_all(std::span<const Transfer> transfers, std::int64_t bytes_per_peer) = 0;
  /// To the next rank, from the previous one.
  virtual void shift(std::span<const Transfer> transfers, std::int64_t bytes) = 0;
  /// receive is [world][bytes_per_rank].
  virtual void all_gather(std::span<const Transfer> transfers, std::int64_t bytes_per_rank) = 0;
  /// send is [world][floats_per_rank]; receive the sum over ranks of this rank's part.
  virtual void reduce_scatter(std::span<const Transfer> transfers, std::int64_t floats_per_rank) = 0;
};

/// All ranks are members of this process and share one device: data is copied. For checks of results, not for times.
[[nodiscard]] std::unique_ptr<Communicator> make_virtual_ranks(std::vector<Member> members);

}  // namespace ulysim::calibration::cuda
