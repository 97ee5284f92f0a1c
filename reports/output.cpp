#include "reports/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "sim/base/check.h"

namespace ulysim::reports {
namespace {

namespace fs = std::filesystem;

/// errno of the first failure, or 0.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

[[noreturn]] void fail(const std::string& name, int error) {
  throw WorldError(fmt::format("cannot write {}: {}", name, std::strerror(error)));
}

void write_in_place(const fs::path& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) {
    fail(path.string(), errno);
  }
  const int error = write_all(file, text);
  ::close(file);
  if (error != 0 && error != EPIPE) {
    fail(path.string(), error);
  }
}

void write_by_rename(const fs::path& path, std::string_view text) {
  std::string temporary = path.string() + ".XXXXXX";
  const int file = ::mkstemp(temporary.data());
  if (file < 0) {
    fail(path.string(), errno);
  }
  int error = write_all(file, text);
  // mkstemp gives 0600; a result is as readable as any new file.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (error == 0 && (::fchmod(file, 0666 & ~mask) != 0 || ::fsync(file) != 0)) {
    error = errno;
  }
  if (::close(file) != 0 && error == 0) {
    error = errno;
  }
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    ::unlink(temporary.c_str());
    fail(path.string(), error);
  }
}

}  // namespace

void write_stdout(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error != 0 && error != EPIPE) {
    fail("to standard output", error);
  }
}

void write_output(const fs::path& path, std::string_view text) {
  if (path == "-") {
    write_stdout(text);
    return;
  }
  std::error_code error;
  // A link stays a link; what it leads to is written.
  const fs::path target = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : path;
  const fs::file_status status = fs::status(target, error);
  if (fs::is_directory(status)) {
    fail(path.string(), EISDIR);
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    write_in_place(target, text);
  } else {
    write_by_rename(target, text);
  }
}

}  // namespace ulysim::reports
