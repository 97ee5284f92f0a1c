#include "tools/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ulysim::tools {
namespace {

constexpr std::size_t kNarrowest = 40;
constexpr std::size_t kWidest = 160;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = variable(name);
    if (!value.empty()) {
      return value.find("UTF-8") != std::string_view::npos || value.find("utf8") != std::string_view::npos;
    }
  }
  return false;
}

}  // namespace

reports::Style terminal_style(const Arguments& arguments) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  reports::Style style{.unicode = utf8_locale()};
  winsize size{};
  if (terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.width = std::clamp<std::size_t>(size.ws_col, kNarrowest, kWidest);
  }
  style.colour = terminal && !arguments.no_color && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  return style;
}

reports::Style file_style() {
  return {.unicode = true};
}

}  // namespace ulysim::tools
