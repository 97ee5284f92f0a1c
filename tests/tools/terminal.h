#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace ulysim::tools {

/// What a program writes to a terminal of so many columns, standard output and error alike. `start` runs in the child.
template <class Start>
std::pair<int, std::string> on_terminal(unsigned short columns, const Start& start) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
    throw std::runtime_error("there are no pseudo-terminals here");
  }
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ioctl(slave, TIOCSWINSZ, &size);
  const pid_t child = fork();
  if (child == 0) {
    dup2(slave, STDOUT_FILENO);
    dup2(slave, STDERR_FILENO);
    close(master);
    close(slave);
    start();
    _exit(127);
  }
  close(slave);
  std::string seen;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(master, buffer, sizeof(buffer))) > 0;) {  // EIO when the last writer is gone
    seen.append(buffer, static_cast<std::size_t>(n));
  }
  close(master);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), seen};
}

}  // namespace ulysim::tools
