#pragma once

#include <optional>
#include <string>

#include "tools/command.h"

namespace ulysim::tools {

/// A command line that was understood: either a command with its arguments, or text to print (help, version).
struct Invocation {
  const Command* command{};  ///< nullptr: print `text`
  Arguments arguments{};
  std::string text{};
};

/// Throws UsageError with a sentence.
[[nodiscard]] Invocation parse_command_line(int argc, const char* const* argv);

}  // namespace ulysim::tools
