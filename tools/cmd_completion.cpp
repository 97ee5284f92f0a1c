#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reports/output.h"
#include "sim/base/named.h"
#include "tools/cli.h"
#include "tools/command.h"
#include "tools/completion.h"
#include "tools/study_input.h"

namespace ulysim::tools {
namespace {

int run(const Arguments& arguments) {
  const std::vector<std::string>& shells = completion_shells();
  const std::string& shell = only_positional(arguments, fmt::format("shell ({})", fmt::join(shells, ", ")));
  if (std::find(shells.begin(), shells.end(), shell) == shells.end()) {
    throw UsageError(fmt::format("unknown shell '{}'{}", shell, did_you_mean(shell, shells)));
  }
  reports::write_stdout(completion_script(shell, command_words()));
  return kDone;
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .summary = "print a script that completes commands, options and names in a shell",
          .positional = "SHELL",
          .positional_help = "bash, zsh or fish",
          .takes = fmt::format("{}", fmt::join(completion_shells(), "|")),
          .options = {},
          .examples =
              "  source <(ulysim completion bash)\n"
              "  ulysim completion bash > ~/.local/share/bash-completion/completions/ulysim\n"
              "  ulysim completion zsh > ~/.zfunc/_ulysim     (with fpath+=~/.zfunc before compinit)\n"
              "  ulysim completion fish > ~/.config/fish/completions/ulysim.fish\n",
          .run = run};
}

}  // namespace ulysim::tools
