#include "calibration/cuda/nccl_communicator.h"

#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "sim/base/check.h"

namespace ulysim::calibration::cuda {
namespace {

void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) {
    throw WorldError(fmt::format("NCCL, {}: {}; {}", what, ncclGetErrorString(result), ncclGetLastError(nullptr)));
  }
}

/// `call(m)` of every member in one group, or the first would wait for the others. A group that a refused call left
/// open would hold back whatever is asked for later.
template <class Call>
void in_group(const std::vector<NcclMember>& members, const char* what, Call call) {
  check(ncclGroupStart(), what);
  ncclResult_t asked = ncclSuccess;
  for (std::size_t m = 0; m < members.size() && asked == ncclSuccess; ++m) {
    members[m].device->make_current();
    asked = call(m);
  }
  const ncclResult_t ended = ncclGroupEnd();
  check(asked != ncclSuccess ? asked : ended, what);
}

const std::byte* part(const void* memory, int index, std::int64_t bytes) {
  return static_cast<const std::byte*>(memory) + index * bytes;
}
std::byte* part(void* memory, int index, std::int64_t bytes) {
  return static_cast<std::byte*>(memory) + index * bytes;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
/// One allocation on each member's GPU (ncclMemAlloc: memory that other GPUs can map), registered collectively.
class Windows final : public SymmetricBuffers {
 public:
  Windows(std::vector<NcclMember> members, std::vector<ncclComm_t> communicators, std::size_t bytes)
      : members_(std::move(members)),
        communicators_(std::move(communicators)),
        memory_(members_.size()),
        windows_(members_.size()) {
    for (std::size_t m = 0; m < members_.size(); ++m) {
      members_[m].device->make_current();
      check(ncclMemAlloc(&memory_[m], bytes), "allocating symmetric memory");
    }
    in_group(members_, "registering a window", [&](std::size_t m) {
      return ncclCommWindowRegister(communicators_[m], memory_[m], bytes, &windows_[m], NCCL_WIN_COLL_SYMMETRIC);
    });
  }
  ~Windows() override {
    for (std::size_t m = 0; m < members_.size(); ++m) {
      static_cast<void>(ncclCommWindowDeregister(communicators_[m], windows_[m]));
      static_cast<void>(ncclMemFree(memory_[m]));
    }
  }
  [[nodiscard]] void* at(std::size_t m) const override { return memory_.at(m); }

 private:
  std::vector<NcclMember> members_;
  std::vector<ncclComm_t> communicators_;
  std::vector<void*> memory_;
  std::vector<ncclWindow_t> windows_;
};
#endif

class Nccl final : public NcclCommunicator {
 public:
  Nccl(const ncclUniqueId& id, int world, std::vector<NcclMember> members)
      : world_(world), members_(std::move(members)), communicators_(members_.size()) {
    in_group(members_, "connecting the ranks",
             [&](std::size_t m) { return ncclCommInitRank(&communicators_[m], world, id, members_[m].rank); });
  }
  ~Nccl() override {
    for (const std::vector<ncclComm_t>* const list : {&zero_cta_, &communicators_}) {
      for (const ncclComm_t communicator : *list) {
        static_cast<void>(ncclCommDestroy(communicator));
      }
    }
  }

  [[nodiscard]] int world() const override { return world_; }

  void all_to_all(std::span<const Transfer> transfers, std::int64_t bytes_per_peer) override {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    for_members("all-to-all", [&](std::size_t m, cudaStream_t stream) {
      return ncclAlltoAll(transfers[m].send, transfers[m].receive, count(bytes_per_peer), ncclInt8, communicators_[m],
                          stream);
    });
#else
    all_to_all_grouped(transfers, bytes_per_peer);
#endif
  }

  void all_to_all_grouped(std::span<const Transfer> transfers, std::int64_t bytes_per_peer) override {
    for_members("grouped all-to-all", [&](std::size_t m, cudaStream_t stream) {
      for (int peer = 0; peer < world_; ++peer) {
        if (const ncclResult_t sent = ncclSend(part(transfers[m].send, peer, bytes_per_peer), count(bytes_per_peer),
                                               ncclInt8, peer, communicators_[m], stream);
            sent != ncclSuccess) {
          return sent;
        }
        if (const ncclResult_t received = ncclRecv(part(transfers[m].receive, peer, bytes_per_peer),
                                                   count(bytes_per_peer), ncclInt8, peer, communicators_[m], stream);
            received != ncclSuccess) {
          return received;
        }
      }
      return ncclSuccess;
    });
  }

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  [[nodiscard]] std::unique_ptr<SymmetricBuffers> allocate_symmetric(std::int64_t bytes) override {
    const std::int64_t whole = (bytes + NCCL_WIN_REQUIRED_ALIGNMENT - 1) / NCCL_WIN_REQUIRED_ALIGNMENT;
    try {
      split_zero_cta();
      return std::make_unique<Windows>(members_, zero_cta_, count(whole * NCCL_WIN_REQUIRED_ALIGNMENT));
    } catch (const WorldError& error) {
      throw std::runtime_error(error.what());
    }
  }

  void all_to_all_symmetric(std::span<const Transfer> transfers, std::int64_t bytes_per_peer) override {
    for_members("symmetric all-to-all", [&](std::size_t m, cudaStream_t stream) {
      return ncclAlltoAll(transfers[m].send, transfers[m].receive, count(bytes_per_peer), ncclInt8, zero_cta_[m],
                          stream);
    });
  }
#else
  [[nodiscard]] std::unique_ptr<SymmetricBuffers> allocate_symmetric(std::int64_t) override {
    throw std::runtime_error("symmetric memory needs NCCL 2.28");
  }
  void all_to_all_symmetric(std::span<const Transfer>, std::int64_t) override {
    throw std::runtime_error("symmetric memory needs NCCL 2.28");
  }
#endif

  void shift(std::span<const Transfer> transfers, std::int64_t bytes) override {
    for_members("shift", [&](std::size_t m, cudaStream_t stream) {
      const int rank = members_[m].rank;
      const ncclResult_t sent =
          ncclSend(transfers[m].send, count(bytes), ncclInt8, (rank + 1) % world_, communicators_[m], stream);
      return sent != ncclSuccess ? sent
                                 : ncclRecv(transfers[m].receive, count(bytes), ncclInt8, (rank + world_ - 1) % world_,
                                            communicators_[m], stream);
    });
  }

  void all_gather(std::span<const Transfer> transfers, std::int64_t bytes_per_rank) override {
    for_members("all-gather", [&](std::size_t m, cudaStream_t stream) {
      return ncclAllGather(transfers[m].send, transfers[m].receive, count(bytes_per_rank), ncclInt8, communicators_[m],
                           stream);
    });
  }

  void reduce_scatter(std::span<const Transfer> transfers, std::int64_t floats_per_rank) override {
    for_members("reduce-scatter", [&](std::size_t m, cudaStream_t stream) {
      return ncclReduceScatter(transfers[m].send, transfers[m].receive, count(floats_per_rank), ncclFloat32, ncclSum,
                               communicators_[m], stream);
    });
  }

  void all_reduce(std::span<const Transfer> transfers, std::int64_t elements) override {
    for_members("all-reduce", [&](std::size_t m, cudaStream_t stream) {
      return ncclAllReduce(transfers[m].send, transfers[m].receive, count(elements), ncclBfloat16, ncclSum,
                           communicators_[m], stream);
    });
  }

  [[nodiscard]] std::vector<double> largest(std::vector<double> values) override {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(double));
    std::vector<Buffer> buffers;
    for (const NcclMember& member : members_) {
      const Buffer& buffer = buffers.emplace_back(*member.device, bytes);
      member.device->upload(buffer.as<void>(), values.data(), bytes);
    }
    for_members("the slowest rank", [&](std::size_t m, cudaStream_t stream) {
      return ncclAllReduce(buffers[m].as<void>(), buffers[m].as<void>(), values.size(), ncclFloat64, ncclMax,
                           communicators_[m], stream);
    });
    members_.front().device->download(values.data(), buffers.front().as<void>(), bytes);
    for (const NcclMember& member : members_) {
      member.device->synchronize();
    }
    return values;
  }

  void from_rank_zero(std::span<std::byte> bytes) override {
    const auto size = static_cast<std::int64_t>(bytes.size());
    std::vector<Buffer> buffers;
    for (const NcclMember& member : members_) {
      const Buffer& buffer = buffers.emplace_back(*member.device, size);
      member.device->upload(buffer.as<void>(), bytes.data(), size);
    }
    for_members("what rank 0 says", [&](std::size_t m, cudaStream_t stream) {
      return ncclBroadcast(buffers[m].as<void>(), buffers[m].as<void>(), bytes.size(), ncclInt8, 0, communicators_[m],
                           stream);
    });
    for (const NcclMember& member : members_) {
      member.device->synchronize();
    }
    members_.front().device->download(bytes.data(), buffers.front().as<void>(), size);
  }

 private:
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  // A policy belongs to a communicator, and this one would slow the others' collectives down.
  void split_zero_cta() {
    if (!zero_cta_.empty()) {
      return;
    }
    std::vector<ncclComm_t> made(members_.size());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    in_group(members_, "a communicator without kernels",
             [&](std::size_t m) { return ncclCommSplit(communicators_[m], 0, members_[m].rank, &made[m], &config); });
    zero_cta_ = std::move(made);
  }
#endif

  static std::size_t count(std::int64_t value) {
    return static_cast<std::size_t>(value);
  }

  template <class Call>
  void for_members(const char* what, Call call) {
    in_group(members_, what, [&](std::size_t m) {
      return call(m, static_cast<cudaStream_t>(members_[m].device->stream(Lane::exchange)));
    });
  }

  int world_;
  std::vector<NcclMember> members_;
  std::vector<ncclComm_t> communicators_;
  std::vector<ncclComm_t> zero_cta_;  ///< for symmetric memory; made when it is first asked for
};

}  // namespace

std::vector<std::byte> nccl_unique_id() {
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id), "a new id");
  const auto* const bytes = reinterpret_cast<const std::byte*>(&id);
  return {bytes, bytes + sizeof id};
}

std::unique_ptr<NcclCommunicator> make_nccl(std::span<const std::byte> id, int world, std::vector<NcclMember> members) {
  ncclUniqueId native{};
  ULYSIM_CHECK(id.size() == sizeof native, "an NCCL id has {} bytes, not {}", sizeof native, id.size());
  std::memcpy(&native, id.data(), sizeof native);
  return std::make_unique<Nccl>(native, world, std::move(members));
}

std::string nccl_version() {
  int version = 0;
  check(ncclGetVersion(&version), "its version");
  // 22809 is 2.28.9.
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace ulysim::calibration::cuda
