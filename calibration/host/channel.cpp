#include "calibration/host/channel.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "sim/base/check.h"

namespace ulysim::calibration::host {

Channel::~Channel() {
  if (socket_ >= 0) {
    close(socket_);
  }
}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}

void Channel::send(std::span<const std::byte> message) const {
  while (::send(socket_, message.data(), message.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

std::optional<std::vector<std::byte>> Channel::receive() const {
  // The length first (MSG_TRUNC), then the message.
  ssize_t length = 0;
  do {
    length = recv(socket_, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  } while (length < 0 && errno == EINTR);
  if (length <= 0) {
    return std::nullopt;
  }
  std::vector<std::byte> message(static_cast<std::size_t>(length));
  if (recv(socket_, message.data(), message.size(), 0) != length) {
    return std::nullopt;
  }
  return message;
}

std::pair<Channel, Channel> make_channel() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw WorldError(fmt::format("cannot make a channel to a rank: {}", std::strerror(errno)));
  }
  return {Channel(ends[0]), Channel(ends[1])};
}

}  // namespace ulysim::calibration::host
