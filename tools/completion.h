#pragma once

#include <string>
#include <vector>

namespace ulysim::tools {

/// An option as the command line knows it.
struct OptionWords {
  std::vector<std::string> names{};  ///< "-o", "--out"
  std::string takes{};  ///< what its value is: FILE, DIR, a word that `list` knows (MODEL, NODE …), words "a|b", or
                        ///< anything else; empty for a flag
  std::string help{};
  bool repeatable{};
};

struct CommandWords {
  std::string name{};
  std::string summary{};
  std::string positional{};  ///< "SCENARIO"; empty when it takes none
  std::string takes{};       ///< what that is, as for options
  std::vector<OptionWords> options{};
};

/// The shells that there are completions for.
[[nodiscard]] const std::vector<std::string>& completion_shells();

/// A script that completes these commands in `shell`, which is one of them.
[[nodiscard]] std::string completion_script(const std::string& shell, const std::vector<CommandWords>& commands);

}  // namespace ulysim::tools
