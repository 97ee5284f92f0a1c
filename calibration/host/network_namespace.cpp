#include "calibration/host/network_namespace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sim/base/check.h"

namespace ulysim::calibration::host {
namespace {

constexpr const char* kCableEnd = "ulysim0";

}  // namespace

void run_program(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw WorldError(fmt::format("cannot start '{}': {}", command[0], std::strerror(error)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw WorldError(fmt::format("'{}' failed", fmt::join(command, " ")));
  }
}

void enter_own_network() {
  if (unshare(CLONE_NEWNET) != 0) {
    throw WorldError(fmt::format("network namespaces are not permitted here: {}", std::strerror(errno)));
  }
}

void join_networks(int first_pid, int second_pid) {
  run_program({"ip", "link", "add", kCableEnd, "netns", std::to_string(first_pid), "type", "veth", "peer", "name",
               kCableEnd, "netns", std::to_string(second_pid)});
}

std::string configure_network(int rank, const std::string& rate) {
  std::string ip = fmt::format("10.77.0.{}", rank + 1);
  run_program({"ip", "address", "add", ip + "/24", "dev", kCableEnd});
  run_program({"ip", "link", "set", kCableEnd, "up"});
  run_program({"ip", "link", "set", "lo", "up"});
  run_program(
      {"tc", "qdisc", "add", "dev", kCableEnd, "root", "tbf", "rate", rate, "burst", "32kb", "latency", "20ms"});
  return ip;
}

}  // namespace ulysim::calibration::host
