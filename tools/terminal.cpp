#include "tools/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace ulysim::tools {
namespace {

constexpr std::size_t kNarrowest = 40;
constexpr std::size_t kWidest = 160;
constexpr std::size_t kWidestPipe = 1000;

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

// A terminal knows; elsewhere COLUMNS says, so that what is piped can have its rows whole.
std::size_t width_of(int file) {
  winsize size{};
  if (::isatty(file) == 1 && ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::clamp<std::size_t>(size.ws_col, kNarrowest, kWidest);
  }
  const std::string_view columns = variable("COLUMNS");
  std::size_t told = 0;
  const auto [end, error] = std::from_chars(columns.data(), columns.data() + columns.size(), told);
  const bool is_number = error == std::errc() && end == columns.data() + columns.size() && told > 0;
  return is_number ? std::clamp(told, kNarrowest, kWidestPipe) : reports::Style{}.width;
}

}  // namespace

reports::Style terminal_style(const Arguments& arguments) {
  const bool terminal = stdout_is_terminal();
  reports::Style style{.width = width_of(STDOUT_FILENO), .unicode = utf8_locale()};
  style.colour = terminal && !arguments.no_color && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  return style;
}

bool stdout_is_terminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}

bool stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1 && variable("TERM") != "dumb";
}

std::size_t stderr_width() {
  return width_of(STDERR_FILENO);
}

reports::Style file_style() {
  return {.unicode = true};
}

}  // namespace ulysim::tools
