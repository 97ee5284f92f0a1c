#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "calibration/host/transport.h"
#include "calibration/host/waiting.h"
#include "sim/base/check.h"

namespace ulysim::calibration::host {
namespace {

constexpr std::size_t kQueueBytes = std::size_t{1} << 20U;
// Published piece by piece: the reader starts while the writer goes on, and a piece stays in the second-level cache.
constexpr std::size_t kPieceBytes = std::size_t{1} << 16U;
constexpr std::size_t kCacheLine = 64;

/// Bytes from one rank to one other. `written` and `read` only grow; their difference is what the queue holds.
struct Queue {
  alignas(kCacheLine) std::atomic<std::uint64_t> written{};
  alignas(kCacheLine) std::atomic<std::uint64_t> read{};
  alignas(kCacheLine) std::array<std::byte, kQueueBytes> bytes;
};

/// Copies what fits now; how much that was.
std::size_t push(Queue& queue, std::span<const std::byte> bytes) {
  const std::uint64_t written = queue.written.load(std::memory_order_relaxed);
  const std::uint64_t room = kQueueBytes - (written - queue.read.load(std::memory_order_acquire));
  const std::size_t at = written % kQueueBytes;
  const std::size_t count = std::min({bytes.size(), std::size_t{room}, kPieceBytes, kQueueBytes - at});
  if (count > 0) {
    std::memcpy(queue.bytes.data() + at, bytes.data(), count);
    queue.written.store(written + count, std::memory_order_release);
  }
  return count;
}

std::size_t pop(Queue& queue, std::span<std::byte> bytes) {
  const std::uint64_t read = queue.read.load(std::memory_order_relaxed);
  const std::uint64_t there = queue.written.load(std::memory_order_acquire) - read;
  const std::size_t at = read % kQueueBytes;
  const std::size_t count = std::min({bytes.size(), std::size_t{there}, kPieceBytes, kQueueBytes - at});
  if (count > 0) {
    std::memcpy(bytes.data(), queue.bytes.data() + at, count);
    queue.read.store(read + count, std::memory_order_release);
  }
  return count;
}

class SharedMemoryTransport final : public Transport {
 public:
  // The parent mapped zeros, which is an empty queue.
  SharedMemoryTransport(Queue* queues, int rank, int ranks) : queues_(queues), rank_(rank), ranks_(ranks) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return ranks_; }

  void send_recv(Outgoing out, Incoming in) override {
    Queue& to = queue(rank_, out.to);
    Queue& from = queue(in.from, rank_);
    Wait wait(in.bytes.empty() ? out.to : in.from);
    while (!out.bytes.empty() || !in.bytes.empty()) {
      const std::size_t sent = push(to, out.bytes);
      const std::size_t received = pop(from, in.bytes);
      out.bytes = out.bytes.subspan(sent);
      in.bytes = in.bytes.subspan(received);
      if (sent + received == 0) {
        wait.pause();
      } else {
        wait.reset();
      }
    }
  }

 private:
  [[nodiscard]] Queue& queue(int from, int to) const {
    ULYSIM_CHECK(from >= 0 && from < ranks_ && to >= 0 && to < ranks_ && from != to, "{} to {} of {}", from, to,
                 ranks_);
    return queues_[from * ranks_ + to];
  }

  Queue* queues_;
  int rank_;
  int ranks_;
};

}  // namespace

struct Barrier::State {
  alignas(kCacheLine) std::atomic<int> arrived{};
  alignas(kCacheLine) std::atomic<std::uint32_t> generation{};
};

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw WorldError(fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  data_ = static_cast<std::byte*>(mapped);
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
}

Barrier::Barrier(const SharedMemory& memory, int ranks)
    : state_(std::launder(reinterpret_cast<State*>(memory.data()))), ranks_(ranks) {}

std::size_t Barrier::bytes_needed() {
  return sizeof(State);
}

void Barrier::wait() {
  const std::uint32_t generation = state_->generation.load(std::memory_order_acquire);
  if (state_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
    state_->arrived.store(0, std::memory_order_relaxed);
    state_->generation.fetch_add(1, std::memory_order_release);
    return;
  }
  Wait patience(kAnyPeer);
  while (state_->generation.load(std::memory_order_acquire) == generation) {
    patience.pause();
  }
}

std::size_t shared_memory_bytes(int ranks) {
  return sizeof(Queue) * static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
}

std::unique_ptr<Transport> make_shared_memory_transport(const SharedMemory& memory, int rank, int ranks) {
  return std::make_unique<SharedMemoryTransport>(std::launder(reinterpret_cast<Queue*>(memory.data())), rank, ranks);
}

}  // namespace ulysim::calibration::host
