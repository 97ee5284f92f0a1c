#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ulysim::calibration::host {

/// One end of a pair of local sockets that keep message boundaries, between the parent and a rank.
class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}
  ~Channel();
  Channel(Channel&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Channel& operator=(Channel&& other) noexcept;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Nothing happens when the other end is gone: the next receive tells.
  void send(std::span<const std::byte> message) const;
  /// Waits; nothing when the other end is gone.
  [[nodiscard]] std::optional<std::vector<std::byte>> receive() const;
  [[nodiscard]] int socket() const { return socket_; }

 private:
  int socket_;
};

[[nodiscard]] std::pair<Channel, Channel> make_channel();

}  // namespace ulysim::calibration::host
