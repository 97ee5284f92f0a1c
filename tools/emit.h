#pragma once

#include "reports/writer.h"
#include "tools/command.h"

namespace ulysim::tools {

/// UsageError when two outputs want standard output, or one of them is an empty name; WorldError when the program was
/// built without the page that --html fills: told before any work is done.
void check_outputs(const Arguments& arguments);

/// Prints the table unless --quiet or another format goes to standard output, and writes every file asked for.
/// UsageError when a format asked for cannot show this kind of result.
void emit(const reports::Report& report, const Arguments& arguments);

}  // namespace ulysim::tools
