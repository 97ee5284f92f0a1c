#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/completion.h"

namespace ulysim::tools {

/// A command line that was understood: either a command with its arguments, or text to print (help, version).
struct Invocation {
  const Command* command{};  ///< nullptr: print `text`
  Arguments arguments{};
  std::string text{};
};

/// Throws UsageError with a sentence.
[[nodiscard]] Invocation parse_command_line(int argc, const char* const* argv);

/// All commands and their options, for completion.
[[nodiscard]] std::vector<CommandWords> command_words();

}  // namespace ulysim::tools
