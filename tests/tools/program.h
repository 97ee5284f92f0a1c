#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ulysim::tools {

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Outcome {
  int status{};  ///< exit status; 1000 + signal when it was killed
  std::string out{};
  std::string err{};
};

/// A folder of its own for each test, and the built program run in it.
class Sandbox {
 public:
  Sandbox() {
    std::string name = (std::filesystem::temp_directory_path() / "ulysim-tools-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("cannot make a temporary folder");
    }
    folder_ = name;
  }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  ~Sandbox() { std::filesystem::remove_all(folder_); }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }

  /// `environment` holds "NAME=value" beside the inherited ones.
  [[nodiscard]] Outcome run(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment = {}) const {
    return outcome_of(begin(arguments, environment));
  }

  /// The program, running; to be waited for with `outcome_of`. One at a time: its output lies in the folder.
  [[nodiscard]] pid_t begin(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment = {}) const {
    const pid_t child = fork();
    if (child == 0) {
      dup2(open(file(".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      dup2(open(file(".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      become(arguments, environment);
    }
    return child;
  }
  [[nodiscard]] Outcome outcome_of(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status),
            .out = content_of(file(".out")),
            .err = content_of(file(".err"))};
  }

  /// Turns this process into the program.
  [[noreturn]] static void become(const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& environment) {
    for (const std::string& variable : environment) {
      const std::size_t equals = variable.find('=');
      setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
    std::vector<std::string> text{ULYSIM_PROGRAM};
    text.insert(text.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& argument : text) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }

 private:
  [[nodiscard]] std::string file(const char* name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

}  // namespace ulysim::tools
