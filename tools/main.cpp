#include <fmt/format.h>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

#include "reports/output.h"
#include "reports/text.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"
#include "tools/cli.h"

namespace ulysim::tools {
namespace {

int complain(int status, std::string_view sentence) {
  fmt::print(stderr, "ulysim: {}\n", reports::printable(sentence));
  return status;
}

int run(int argc, const char* const* argv) {
  const Invocation invocation = parse_command_line(argc, argv);
  if (invocation.command == nullptr) {
    reports::write_stdout(invocation.text);
    return kDone;
  }
  return invocation.command->run(invocation.arguments);
}

/// The one place where failures become text and an exit status.
int guarded(int argc, const char* const* argv) {
  try {
    return run(argc, argv);
  } catch (const InputError& error) {
    for (const Diagnostic& found : error.diagnostics()) {
      fmt::print(stderr, "{}\n", reports::printable(to_string(found)));
    }
    return kWrongInput;
  } catch (const UsageError& error) {
    return complain(kWrongInput, error.what());
  } catch (const RangeError& error) {
    return complain(kWrongInput, error.what());
  } catch (const WorldError& error) {
    return complain(kWorldFailed, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return complain(kWorldFailed, error.what());
  } catch (const std::bad_alloc&) {
    return complain(kWorldFailed, "out of memory");
  } catch (const std::exception& error) {
    return complain(kOurBug, fmt::format("internal error, please report it: {}", error.what()));
  }
}

}  // namespace
}  // namespace ulysim::tools

int main(int argc, char** argv) {
  // A reader that goes away ('| head') is told by EPIPE, not by a signal.
  signal(SIGPIPE, SIG_IGN);
  return ulysim::tools::guarded(argc, argv);
}
