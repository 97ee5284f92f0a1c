#include "calibration/host/processes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <type_traits>

#include "calibration/host/network_namespace.h"
#include "calibration/host/rank.h"
#include "sim/base/check.h"

namespace ulysim::calibration::host {
namespace {

static_assert(std::is_trivially_copyable_v<Order> && std::is_trivially_copyable_v<ErrorNorm>);

using Message = std::vector<std::byte>;

// The first byte of an answer.
constexpr std::byte kDone{'d'};
constexpr std::byte kFailed{'f'};

template <class T>
Message message_of(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  Message message{kDone};
  message.insert(message.end(), bytes.begin(), bytes.end());
  return message;
}

template <class T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  }
  return values;
}

/// One rank's life, in the forked process.
class RankLife {
 public:
  RankLife(const HostOptions& options, int rank, const Channel& parent)
      : options_(&options), rank_(rank), parent_(&parent) {}

  void run(const SharedMemory& queues, const SharedMemory& barrier) {
    const std::unique_ptr<Transport> transport = connect(queues);
    Rank rank(*transport, Barrier(barrier, options_->ranks));
    while (const auto order = parent_->receive()) {
      const Order todo = values_of<Order>(*order).at(0);
      if (todo.action == Action::measure) {
        parent_->send(message_of<double>(rank.measure(todo.probe, todo.repetitions)));
      } else {
        std::vector<double> sums;
        for (const ErrorNorm& norm : rank.verify(todo.probe)) {
          sums.push_back(norm.difference);
          sums.push_back(norm.reference);
        }
        parent_->send(message_of<double>(sums));
      }
    }
  }

 private:
  std::unique_ptr<Transport> connect(const SharedMemory& queues) {
    if (options_->fabric == Fabric::shared_memory) {
      return make_shared_memory_transport(queues, rank_, options_->ranks);
    }
    std::string ip = "127.0.0.1";
    if (options_->fabric == Fabric::tcp_namespaces) {
      enter_own_network();
      report({});
      (void)await_parent();  // which lays the cable
      ip = configure_network(rank_, options_->rate);
    }
    const Listener listener(ip);
    const std::vector<int> port{listener.port()};
    report(port);
    std::vector<Address> addresses;
    int peer = 0;
    for (const int peer_port : values_of<int>(await_parent())) {
      const bool apart = options_->fabric == Fabric::tcp_namespaces;
      addresses.push_back({apart ? fmt::format("10.77.0.{}", ++peer) : ip, peer_port});
    }
    return make_tcp_transport(listener, rank_, addresses);
  }

  void report(std::span<const int> values) const { parent_->send(message_of(values)); }
  [[nodiscard]] Message await_parent() const {
    auto message = parent_->receive();
    if (!message) {
      _exit(0);
    }
    return *message;
  }

  const HostOptions* options_;
  int rank_;
  const Channel* parent_;
};

/// Never returns: what the parent has on its stack is not the child's to destroy.
[[noreturn]] void live(RankLife life, const Channel& parent, const SharedMemory& queues, const SharedMemory& barrier) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    life.run(queues, barrier);
  } catch (const std::exception& error) {
    Message message{kFailed};
    for (const char* c = error.what(); *c != '\0'; ++c) {
      message.push_back(static_cast<std::byte>(*c));
    }
    parent.send(message);
    _exit(1);
  }
  _exit(0);
}

}  // namespace

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

std::string Child::how_it_ended() {
  int status = 0;
  const int pid = std::exchange(pid_, 0);
  if (pid <= 0 || waitpid(pid, &status, 0) != pid) {
    return "is gone";
  }
  return WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                             : fmt::format("ended with status {}", WEXITSTATUS(status));
}

RankProcesses::RankProcesses(const HostOptions& options)
    : queues_(shared_memory_bytes(options.ranks)), barrier_(Barrier::bytes_needed()) {
  if (options.fabric == Fabric::tcp_namespaces && options.ranks != 2) {
    throw WorldError(fmt::format("network namespaces are joined by one cable: 2 ranks, not {}", options.ranks));
  }
  std::fflush(nullptr);  // what is buffered would be written by every child again
  for (int rank = 0; rank < options.ranks; ++rank) {
    auto [here, there] = make_channel();
    const int pid = fork();
    if (pid < 0) {
      throw WorldError(fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)));
    }
    if (pid == 0) {
      live(RankLife(options, rank, there), there, queues_, barrier_);
    }
    children_.emplace_back(pid, std::move(here));
  }
  if (options.fabric == Fabric::shared_memory) {
    return;
  }
  if (options.fabric == Fabric::tcp_namespaces) {
    (void)answers();
    join_networks(pid(0), pid(1));
    const std::vector<int> go{0};
    tell_all(std::as_bytes(std::span(go)));
  }
  std::vector<int> ports;
  for (const Message& answer : answers()) {
    ports.push_back(values_of<int>(answer).at(0));
  }
  tell_all(std::as_bytes(std::span(ports)));
}

void RankProcesses::tell_all(std::span<const std::byte> message) const {
  for (const Child& child : children_) {
    child.channel().send(message);
  }
}

std::vector<Message> RankProcesses::answers() {
  std::vector<Message> answers(children_.size());
  std::vector<pollfd> open;
  for (const Child& child : children_) {
    open.push_back({.fd = child.channel().socket(), .events = POLLIN, .revents = 0});
  }
  // Whoever speaks or dies first is heard first: the others may be waiting for it.
  for (std::size_t heard = 0; heard < open.size();) {
    if (poll(open.data(), open.size(), -1) < 0 && errno != EINTR) {
      throw WorldError(fmt::format("cannot wait for the ranks: {}", std::strerror(errno)));
    }
    for (std::size_t rank = 0; rank < open.size(); ++rank) {
      if (open[rank].fd < 0 || open[rank].revents == 0) {
        continue;
      }
      open[rank].fd = -1;
      ++heard;
      const auto message = children_[rank].channel().receive();
      if (!message) {
        throw WorldError(fmt::format("rank {} {}", rank, children_[rank].how_it_ended()));
      }
      const std::span<const std::byte> body = std::span(*message).subspan(1);
      if (message->front() == kFailed) {
        const auto text = values_of<char>(body);
        throw WorldError(fmt::format("rank {}: {}", rank, std::string(text.begin(), text.end())));
      }
      answers[rank].assign(body.begin(), body.end());
    }
  }
  return answers;
}

std::vector<std::vector<double>> RankProcesses::ask(const Order& order) {
  tell_all(std::as_bytes(std::span(&order, 1)));
  std::vector<std::vector<double>> values;
  for (const Message& answer : answers()) {
    values.push_back(values_of<double>(answer));
  }
  return values;
}

}  // namespace ulysim::calibration::host
