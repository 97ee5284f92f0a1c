#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ulysim::calibration::host {

struct Outgoing {
  int to{};
  std::span<const std::byte> bytes{};
};

struct Incoming {
  int from{};
  std::span<std::byte> bytes{};
};

/// Moves bytes between the ranks of a group.
/// Contract: both directions progress together, whatever their sizes, so that a ring of send_recv cannot deadlock;
/// between two ranks, bytes arrive in the order sent; a peer that says nothing for a minute is a WorldError that names
/// it. Every rank calls from one thread.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Returns when `out` may be overwritten and `in` is complete. Neither peer is this rank.
  virtual void send_recv(Outgoing out, Incoming in) = 0;
};

/// Memory that a parent maps and its forked children share; unmapped by each of them.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_{};
};

/// A barrier of all ranks in shared memory: microseconds, whatever the transport under test.
class Barrier {
 public:
  Barrier(const SharedMemory& memory, int ranks);
  [[nodiscard]] static std::size_t bytes_needed();
  void wait();

 private:
  struct State;
  State* state_;
  int ranks_;
};

/// A queue of bytes in shared memory from every rank to every other.
[[nodiscard]] std::size_t shared_memory_bytes(int ranks);
[[nodiscard]] std::unique_ptr<Transport> make_shared_memory_transport(const SharedMemory& memory, int rank, int ranks);

struct Address {
  std::string ip{};
  int port{};
};

/// A listening socket; its port is chosen by the system.
class Listener {
 public:
  explicit Listener(const std::string& ip);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int socket() const { return socket_; }

 private:
  int socket_;
  int port_{};
};

/// One TCP connection to every other rank: this rank connects to those below and accepts those above.
[[nodiscard]] std::unique_ptr<Transport> make_tcp_transport(const Listener& listener, int rank,
                                                            const std::vector<Address>& addresses);

}  // namespace ulysim::calibration::host
