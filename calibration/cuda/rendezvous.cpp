#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
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

/// A rank to which this one is joined.
struct Other {
  int rank{};
  Socket socket;
};

// A machine that lost its power closes nothing: the kernel asks after it, and gives it up within two minutes.
void keep_alive(const Socket& socket) {
  constexpr int kOn = 1;
  constexpr int kSecondsIdle = 30;
  constexpr int kSecondsBetween = 10;
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &kSecondsIdle, sizeof kSecondsIdle);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &kSecondsBetween, sizeof kSecondsBetween);
}

std::vector<Other> serve(const RankPlace& place, const MeetingPoint& where, std::vector<std::byte>& bytes,
                         Clock::time_point until) {
  std::vector<Other> others;
  const Socket listening = listen_at(where, place.world);
  std::vector<bool> came(static_cast<std::size_t>(place.world));
  for (int missing = place.world - 1; missing > 0;) {
    if (!wait_for(listening, POLLIN, until)) {
      throw WorldError(fmt::format("{} of {} ranks did not come to port {}", missing, place.world, where.port));
    }
    Socket client(accept(listening.get(), nullptr, nullptr));
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
      others.push_back({.rank = greeting.rank, .socket = std::move(client)});
      --missing;
    }
  }
  return others;
}

std::optional<Socket> ask(const RankPlace& place, const addrinfo& address, std::vector<std::byte>& bytes,
                          Clock::time_point until) {
  Socket socket(::socket(address.ai_family, address.ai_socktype, address.ai_protocol));
  if (!socket.ok() || connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    return std::nullopt;
  }
  Greeting greeting{.rank = place.rank, .world = place.world};
  std::uint64_t size = 0;
  constexpr std::uint64_t kMost = 1U << 20U;
  if (!transfer(socket, &greeting, sizeof greeting, Way::send, until) ||
      !transfer(socket, &size, sizeof size, Way::receive, until) || size > kMost) {
    return std::nullopt;
  }
  bytes.resize(size);
  if (!transfer(socket, bytes.data(), bytes.size(), Way::receive, until)) {
    return std::nullopt;
  }
  return socket;
}

Other find_rank_zero(const RankPlace& place, const MeetingPoint& where, std::vector<std::byte>& bytes,
                     Clock::time_point until) {
  // Rank 0 may start last.
  constexpr auto kPause = std::chrono::milliseconds(50);
  while (Clock::now() < until) {
    const Addresses addresses = resolve(where.host.c_str(), where, 0);
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      if (auto socket = ask(place, *address, bytes, until)) {
        return {.rank = 0, .socket = std::move(*socket)};
      }
    }
    std::this_thread::sleep_for(kPause);
  }
  throw WorldError(fmt::format("rank {} found no rank 0 at {}:{}", place.rank, where.host, where.port));
}

std::vector<Other> meet(const RankPlace& place, const MeetingPoint& where, std::vector<std::byte>& bytes) {
  std::vector<Other> others;
  if (place.world > 1) {
    const auto until = Clock::now() + where.patience;
    if (place.rank == 0) {
      others = serve(place, where, bytes, until);
    } else {
      others.push_back(find_rank_zero(place, where, bytes, until));
    }
  }
  for (const Other& other : others) {
    keep_alive(other.socket);
  }
  return others;
}

/// Until all others have said goodbye or `stop`: the first that is gone without.
std::optional<int> first_missed(std::vector<Other>& others, const std::stop_token& stop) {
  constexpr int kMillisecondsToStop = 50;
  while (!others.empty() && !stop.stop_requested()) {
    std::vector<pollfd> waiting;
    for (const Other& other : others) {
      waiting.push_back({.fd = other.socket.get(), .events = POLLIN, .revents = 0});
    }
    if (poll(waiting.data(), waiting.size(), kMillisecondsToStop) <= 0) {
      continue;
    }
    for (std::size_t i = others.size(); i-- > 0;) {
      std::byte goodbye{};
      if (waiting[i].revents == 0) {
        continue;
      }
      if (recv(others[i].socket.get(), &goodbye, 1, 0) != 1) {
        return others[i].rank;
      }
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return std::nullopt;
}

}  // namespace

struct Company::Parts {
  std::vector<std::byte> bytes{};
  std::vector<Other> others{};
  std::jthread watcher{};  ///< last: it uses the others, and is waited for before they go
};

Company::Company(const RankPlace& place, const MeetingPoint& where, std::vector<std::byte> bytes)
    : parts_(std::make_unique<Parts>(Parts{.bytes = std::move(bytes)})) {
  parts_->others = meet(place, where, parts_->bytes);
}
Company::Company(Company&&) noexcept = default;
Company& Company::operator=(Company&&) noexcept = default;
Company::~Company() = default;

const std::vector<std::byte>& Company::bytes() const {
  return parts_->bytes;
}

void Company::watch(std::function<void(const std::string&)> missed) {
  parts_->watcher = std::jthread([&others = parts_->others, missed = std::move(missed)](const std::stop_token& stop) {
    if (const auto rank = first_missed(others, stop)) {
      missed(fmt::format("rank {} is gone before the work was done", *rank));
    }
  });
}

void Company::leave() {
  parts_->watcher = std::jthread();
  for (const Other& other : parts_->others) {
    constexpr std::byte kGoodbye{1};
    static_cast<void>(send(other.socket.get(), &kGoodbye, 1, MSG_NOSIGNAL));
  }
}

}  // namespace ulysim::calibration::cuda
