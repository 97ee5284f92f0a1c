#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calibration/backend.h"
#include "calibration/host/channel.h"
#include "calibration/host/transport.h"

namespace ulysim::calibration::host {

/// What joins the ranks: queues in shared memory, TCP over the loopback device, or TCP between two network namespaces
/// over a virtual cable with a limited rate.
enum class Fabric : std::uint8_t { shared_memory, tcp_loopback, tcp_namespaces };

struct HostOptions {
  int ranks{2};
  Fabric fabric{Fabric::shared_memory};
  std::string rate{"1gbit"};  ///< of the cable between namespaces, as tc(8) writes it
};

enum class Action : std::uint8_t { verify, measure };

/// What all ranks are asked to do; crosses the channel as it lies in memory (one program, forked).
struct Order {
  Action action{Action::measure};
  Probe probe{};
  Repetitions repetitions{};
};

/// A forked process; killed and waited for when it goes out of scope.
class Child {
 public:
  Child(int pid, Channel channel) : pid_(pid), channel_(std::move(channel)) {}
  ~Child();
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)), channel_(std::move(other.channel_)) {}
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] const Channel& channel() const { return channel_; }
  /// How it ended, once its channel is closed: "was killed by signal 9".
  [[nodiscard]] std::string how_it_ended();

 private:
  int pid_;
  Channel channel_;
};

/// The ranks, as processes forked from this one (which must have no other thread). They end with their parent.
class RankProcesses {
 public:
  /// WorldError when the fabric cannot be had: namespaces not permitted, `ip` or `tc` missing.
  explicit RankProcesses(const HostOptions& options);
  /// One answer per rank. WorldError that names the rank when one fails or dies; then nothing more can be asked.
  [[nodiscard]] std::vector<std::vector<double>> ask(const Order& order);
  [[nodiscard]] int pid(int rank) const { return children_.at(static_cast<std::size_t>(rank)).pid(); }

 private:
  [[nodiscard]] std::vector<std::vector<std::byte>> answers();
  void tell_all(std::span<const std::byte> message) const;

  SharedMemory queues_;
  SharedMemory barrier_;
  std::vector<Child> children_;
};

}  // namespace ulysim::calibration::host
