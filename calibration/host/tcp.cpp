#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "calibration/host/transport.h"
#include "calibration/host/waiting.h"
#include "sim/base/check.h"

namespace ulysim::calibration::host {
namespace {

[[noreturn]] void fail(std::string_view what) {
  throw WorldError(fmt::format("TCP: cannot {}: {}", what, std::strerror(errno)));
}

sockaddr_in address_of(const std::string& ip, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = static_cast<in_port_t>((port & 0xff) << 8 | port >> 8);
  std::array<unsigned, 4> parts{};
  std::size_t part = 0;
  for (const char c : ip) {
    if (c == '.') {
      ++part;
    } else {
      parts.at(part) = parts.at(part) * 10U + static_cast<unsigned>(c - '0');
    }
  }
  address.sin_addr.s_addr = parts[0] | parts[1] << 8U | parts[2] << 16U | parts[3] << 24U;
  return address;
}

int open_socket() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    fail("open a socket");
  }
  return socket;
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

void send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      fail("send");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

/// Small messages leave at once: the next step waits for them.
void without_delay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void wait_for(int socket, short events, int peer) {
  pollfd poll_set{.fd = socket, .events = events, .revents = 0};
  const int ready = poll(&poll_set, 1, static_cast<int>(kPatienceSeconds * 1000.0));
  if (ready == 0) {
    give_up_on(peer);
  }
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(int rank, int ranks) : rank_(rank), sockets_(static_cast<std::size_t>(ranks), -1) {}
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;
  ~TcpTransport() override {
    for (const int socket : sockets_) {
      if (socket >= 0) {
        close(socket);
      }
    }
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(sockets_.size()); }

  void connect_to(int peer, const Address& address) {
    const int socket = open_socket();
    sockets_.at(static_cast<std::size_t>(peer)) = socket;
    const sockaddr_in to = address_of(address.ip, address.port);
    if (connect(socket, generic(to), sizeof to) != 0) {
      fail(fmt::format("connect to rank {} at {}:{}", peer, address.ip, address.port));
    }
    without_delay(socket);
    const std::array<int, 1> hello{rank_};
    send_all(socket, std::as_bytes(std::span(hello)));
  }

  void accept_one(const Listener& listener) {
    wait_for(listener.socket(), POLLIN, kAnyPeer);
    const int socket = accept4(listener.socket(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      fail("accept a rank");
    }
    int peer = -1;
    const ssize_t got = recv(socket, &peer, sizeof peer, MSG_WAITALL);
    if (got != static_cast<ssize_t>(sizeof peer) || peer <= rank_ || peer >= size()) {
      close(socket);
      throw WorldError("TCP: a connection that is no rank of this run");
    }
    without_delay(socket);
    sockets_.at(static_cast<std::size_t>(peer)) = socket;
  }

  void send_recv(Outgoing out, Incoming in) override {
    while (!out.bytes.empty() || !in.bytes.empty()) {
      const std::size_t sent = send_some(out);
      const std::size_t received = receive_some(in);
      out.bytes = out.bytes.subspan(sent);
      in.bytes = in.bytes.subspan(received);
      if (sent + received == 0) {
        wait_for_either(out, in);
      }
    }
  }

 private:
  [[nodiscard]] int socket_of(int peer) const { return sockets_.at(static_cast<std::size_t>(peer)); }

  std::size_t send_some(const Outgoing& out) {
    if (out.bytes.empty()) {
      return 0;
    }
    const ssize_t sent = send(socket_of(out.to), out.bytes.data(), out.bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      fail(fmt::format("send to rank {}", out.to));
    }
    return static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }

  std::size_t receive_some(const Incoming& in) {
    if (in.bytes.empty()) {
      return 0;
    }
    const ssize_t received = recv(socket_of(in.from), in.bytes.data(), in.bytes.size(), MSG_DONTWAIT);
    if (received == 0) {
      throw WorldError(fmt::format("rank {} closed its connection", in.from));
    }
    if (received < 0 && errno != EAGAIN && errno != EINTR) {
      fail(fmt::format("receive from rank {}", in.from));
    }
    return static_cast<std::size_t>(std::max<ssize_t>(received, 0));
  }

  void wait_for_either(const Outgoing& out, const Incoming& in) const {
    std::array<pollfd, 2> poll_set{};
    poll_set[0] = {.fd = out.bytes.empty() ? -1 : socket_of(out.to), .events = POLLOUT, .revents = 0};
    poll_set[1] = {.fd = in.bytes.empty() ? -1 : socket_of(in.from), .events = POLLIN, .revents = 0};
    if (poll(poll_set.data(), poll_set.size(), static_cast<int>(kPatienceSeconds * 1000.0)) == 0) {
      give_up_on(in.bytes.empty() ? out.to : in.from);
    }
  }

  int rank_;
  std::vector<int> sockets_;  ///< by peer; -1: this rank
};

}  // namespace

Listener::Listener(const std::string& ip) : socket_(open_socket()) {
  sockaddr_in address = address_of(ip, 0);
  socklen_t length = sizeof address;
  if (bind(socket_, generic(address), sizeof address) != 0 || listen(socket_, SOMAXCONN) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    const int error = errno;
    close(socket_);
    errno = error;
    fail(fmt::format("listen at {}", ip));
  }
  port_ = (address.sin_port & 0xff) << 8 | address.sin_port >> 8;
}

Listener::~Listener() {
  close(socket_);
}

std::unique_ptr<Transport> make_tcp_transport(const Listener& listener, int rank,
                                              const std::vector<Address>& addresses) {
  const int ranks = static_cast<int>(addresses.size());
  auto transport = std::make_unique<TcpTransport>(rank, ranks);
  for (int peer = 0; peer < rank; ++peer) {
    transport->connect_to(peer, addresses[static_cast<std::size_t>(peer)]);
  }
  for (int peer = rank + 1; peer < ranks; ++peer) {
    transport->accept_one(listener);
  }
  return transport;
}

}  // namespace ulysim::calibration::host
