#include "calibration/cuda/nccl_communicator.h"

#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <utility>

#include "sim/base/check.h"

namespace ulysim::calibration::cuda {
namespace {

void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) {
    throw WorldError(fmt::format("NCCL, {}: {}; {}", what, ncclGetErrorString(result), ncclGetLastError(nullptr)));
  }
}

const std::byte* part(const void* memory, int index, std::int64_t bytes) {
  return static_cast<const std::byte*>(memory) + index * bytes;
}
std::byte* part(void* memory, int index, std::int64_t bytes) {
  return static_cast<std::byte*>(memory) + index * bytes;
}

class Nccl final : public NcclCommunicator {
 public:
  Nccl(const ncclUniqueId& id, int world, std::vector<NcclMember> members)
      : world_(world), members_(std::move(members)), communicators_(members_.size()) {
    check(ncclGroupStart(), "starting a group");
    for (std::size_t m = 0; m < members_.size(); ++m) {
      members_[m].device->make_current();
      check(ncclCommInitRank(&communicators_[m], world, id, members_[m].rank), "connecting the ranks");
    }
    check(ncclGroupEnd(), "connecting the ranks");
  }
  ~Nccl() override {
    for (const ncclComm_t communicator : communicators_) {
      static_cast<void>(ncclCommDestroy(communicator));
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

 private:
  static std::size_t count(std::int64_t value) {
    return static_cast<std::size_t>(value);
  }

  // Several ranks of one process must be in one group, or the first would wait for the others.
  template <class Call>
  void for_members(const char* what, Call call) {
    check(ncclGroupStart(), what);
    for (std::size_t m = 0; m < members_.size(); ++m) {
      members_[m].device->make_current();
      check(call(m, static_cast<cudaStream_t>(members_[m].device->stream(Lane::exchange))), what);
    }
    check(ncclGroupEnd(), what);
  }

  int world_;
  std::vector<NcclMember> members_;
  std::vector<ncclComm_t> communicators_;
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
