#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "tools/command.h"

namespace ulysim::tools {

/// The scenario of a command line: its one file, or the study that --model, --node, --nodes, --seq and --plan spell
/// out; --set lies over either. UsageError when they do not go together, InputError when the content is wrong.
[[nodiscard]] scenario::Scenario load_study(const Arguments& arguments);

/// What --set asks for.
[[nodiscard]] std::vector<scenario::Override> set_overrides(const Arguments& arguments);

/// The only positional argument; UsageError names `what` when there is none or more.
[[nodiscard]] const std::string& only_positional(const Arguments& arguments, const std::string& what);

}  // namespace ulysim::tools
