#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "calibration/cuda/ranks.h"
#include "sim/base/check.h"

namespace ulysim::calibration::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// What a rank says first, so that a stranger at the port is told from a rank.
struct Greeting {
  std::uint32_t magic{0x756c7973};  // "ulys"
  std::int32_t rank{};
  std::int32_t world{};
};

std::string system_message() {
  return std::generic_category().message(errno);
}

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }
  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool ok() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

bool wait_for(const Socket& socket, short event, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) {
      return false;
    }
    pollfd waiting{.fd = socket.get(), .events = event, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(left)) > 0) {
      return true;
    }
    if (errno != EINTR && errno != 0) {
      return false;
    }
  }
}

enum class Way : std::uint8_t { send, receive };

/// Whether all bytes went through.
bool transfer(const Socket& socket, void* data, std::size_t bytes, Way way, Clock::time_point until) {
  auto* at = static_cast<std::byte*>(data);
  for (std::size_t done = 0; done < bytes;) {
    if (!wait_for(socket, way == Way::send ? POLLOUT : POLLIN, until)) {
      return false;
    }
    const ssize_t moved = way == Way::send ? send(socket.get(), at + done, bytes - done, MSG_NOSIGNAL)
                                           : recv(socket.get(), at + done, bytes - done, 0);
    if (moved <= 0) {
      return false;
    }
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const char* host, const MeetingPoint& where, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host, where.port.c_str(), &hints, &found); error != 0) {
    throw WorldError(fmt::format("cannot resolve {}:{}: {}", where.host, where.port, gai_strerror(error)));
  }
  return Addresses(found);
}

Socket listen_at(const MeetingPoint& where, int ranks) {
  const Addresses addresses = resolve(nullptr, where, AI_PASSIVE);
  std::string why;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Socket socket(::socket(address->ai_family, address->ai_socktype, address->ai_protocol));
    const int on = 1;
    if (socket.ok() && setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 && listen(socket.get(), ranks) == 0) {
      return socket;
    }
    why = system_message();
  }
  throw WorldError(fmt::format("rank 0 cannot listen at port {}: {}", where.port, why));
}

void serve(const RankPlace& place, const MeetingPoint& where, std::vector<std::byte>& bytes, Clock::time_point until) {
  const Socket listening = listen_at(where, place.world);
  std::vector<bool> came(static_cast<std::size_t>(place.world));
  for (int missing = place.world - 1; missing > 0;) {
    if (!wait_for(listening, POLLIN, until)) {
      throw WorldError(fmt::format("{} of {} ranks did not come to port {}", missing, place.world, where.port));
    }
    const Socket client(accept(listening.get(), nullptr, nullptr));
    Greeting greeting{.magic = 0};
    // A stranger, or one that hangs, must not use up the time of the others.
    const auto soon = std::min(until, Clock::now() + std::chrono::seconds(5));
    if (!client.ok() || !transfer(client, &greeting, sizeof greeting, Way::receive, soon) ||
        greeting.magic != Greeting{}.magic) {
      continue;
    }
    if (greeting.world != place.world || greeting.rank <= 0 || greeting.rank >= place.world ||
        came[static_cast<std::size_t>(greeting.rank)]) {
      throw WorldError(fmt::format("rank {} of {} came to a meeting of {} ranks{}", greeting.rank, greeting.world,
                                   place.world, greeting.world == place.world ? ", a second time" : ""));
    }
    std::uint64_t size = bytes.size();
    if (transfer(client, &size, sizeof size, Way::send, until) &&
        transfer(client, bytes.data(), bytes.size(), Way::send, until)) {
      came[static_cast<std::size_t>(greeting.rank)] = true;
      --missing;
    }
  }
}

bool ask(const RankPlace& place, const addrinfo& address, std::vector<std::byte>& bytes, Clock::time_point until) {
  const Socket socket(::socket(address.ai_family, address.ai_socktype, address.ai_protocol));
  if (!socket.ok() || connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    return false;
  }
  Greeting greeting{.rank = place.rank, .world = place.world};
  std::uint64_t size = 0;
  constexpr std::uint64_t kMost = 1U << 20U;
  if (!transfer(socket, &greeting, sizeof greeting, Way::send, until) ||
      !transfer(socket, &size, sizeof size, Way::receive, until) || size > kMost) {
    return false;
  }
  bytes.resize(size);
  return transfer(socket, bytes.data(), bytes.size(), Way::receive, until);
}

}  // namespace

std::vector<std::byte> share_from_rank_zero(const RankPlace& place, const MeetingPoint& where,
                                            std::vector<std::byte> bytes) {
  if (place.world == 1) {
    return bytes;
  }
  const auto until = Clock::now() + where.patience;
  if (place.rank == 0) {
    serve(place, where, bytes, until);
    return bytes;
  }
  // Rank 0 may start last.
  constexpr auto kPause = std::chrono::milliseconds(50);
  while (Clock::now() < until) {
    const Addresses addresses = resolve(where.host.c_str(), where, 0);
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      if (ask(place, *address, bytes, until)) {
        return bytes;
      }
    }
    std::this_thread::sleep_for(kPause);
  }
  throw WorldError(fmt::format("rank {} found no rank 0 at {}:{}", place.rank, where.host, where.port));
}

}  // namespace ulysim::calibration::cuda
