#include "tools/sibling.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sim/base/check.h"

namespace ulysim::tools {

int run_sibling(const std::string& program, const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path path = self.parent_path() / program;
  // A name with a slash would lead elsewhere.
  if (error || program.find('/') != std::string::npos || !std::filesystem::is_regular_file(path, error)) {
    throw WorldError(fmt::format("there is no {} beside this program: it was not built here", program));
  }
  std::vector<std::string> words{path.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> raw;
  raw.reserve(words.size() + 1);
  for (std::string& word : words) {
    raw.push_back(word.data());
  }
  raw.push_back(nullptr);
  pid_t pid = 0;
  if (const int failed = posix_spawn(&pid, raw[0], nullptr, nullptr, raw.data(), environ); failed != 0) {
    throw WorldError(fmt::format("cannot start {}: {}", program, std::strerror(failed)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) {
    throw WorldError(fmt::format("{} was killed by signal {}", program, WTERMSIG(status)));
  }
  return WEXITSTATUS(status);
}

}  // namespace ulysim::tools
