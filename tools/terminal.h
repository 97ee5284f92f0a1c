#pragma once

#include <cstddef>

#include "reports/writer.h"
#include "tools/command.h"

namespace ulysim::tools {

/// How text on standard output should look: the terminal's width (80 when there is none), Unicode where the locale
/// says UTF-8, colour on a terminal unless NO_COLOR, TERM=dumb or --no-color.
[[nodiscard]] reports::Style terminal_style(const Arguments& arguments);

/// The same for a file: 80 columns, UTF-8, no colour.
[[nodiscard]] reports::Style file_style();

/// Whether somebody looks at what is written there.
[[nodiscard]] bool stdout_is_terminal();
[[nodiscard]] bool stderr_is_terminal();
[[nodiscard]] std::size_t stderr_width();

}  // namespace ulysim::tools
