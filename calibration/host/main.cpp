// ulysim-calibrate-host: measures this machine and writes a samples file. `ulysim calibrate run --backend host` starts
// it; a program of its own, because its kernels are built for the processor at hand.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/host/host_backend.h"
#include "calibration/suite/suite.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"
#include "sim/base/named.h"
#include "sim/base/parse_quantity.h"

namespace ulysim::calibration::host {
namespace {

constexpr int kWorldFailed = 1;
constexpr int kWrongInput = 2;
constexpr int kOurBug = 70;
constexpr int kMostRanks = 64;

constexpr const char* kHelp =
    "Measures products, attention, copies, collectives and whole layers on this machine.\n"
    "Usage: ulysim-calibrate-host --out FILE [options]\n"
    "  --out FILE            samples, one row each (CSV)\n"
    "  --resume              go on with FILE: measure what it lacks\n"
    "  --ranks N             processes (default 2)\n"
    "  --fabric NAME         shared-memory (default), tcp-loopback, tcp-namespaces (needs root; 2 ranks)\n"
    "  --rate RATE           of the cable between namespaces, as tc writes it (default 1gbit)\n"
    "  --size NAME           standard (default) or quick\n"
    "  --quiet               no progress on standard error\n"
    "  --help\n"
    "Exit: 0 done, 1 a rank or the machine failed, 2 wrong input, 70 a bug.\n";

struct Request {
  HostOptions host{};
  SuiteSize size{SuiteSize::standard};
  SuiteOptions suite{.progress = Progress::on_stderr};
};

class WrongUse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class T>
T chosen(const std::string& option, const std::string& text, const std::vector<std::pair<std::string, T>>& allowed) {
  std::vector<std::string> names;
  for (const auto& [name, value] : allowed) {
    if (name == text) {
      return value;
    }
    names.push_back(name);
  }
  throw WrongUse(fmt::format("unknown {} '{}'{}", option, text, did_you_mean(text, names)));
}

/// Nothing: help was asked for.
std::optional<Request> parse(const std::vector<std::string>& words) {
  Request request;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& option = words[i];
    const auto value = [&]() -> const std::string& {
      if (++i >= words.size()) {
        throw WrongUse(option + " needs a value");
      }
      return words[i];
    };
    if (option == "--help" || option == "-h") {
      return std::nullopt;
    }
    if (option == "--resume") {
      request.suite.existing = Existing::resume;
    } else if (option == "--quiet") {
      request.suite.progress = Progress::silent;
    } else if (option == "--out") {
      request.suite.file = value();
    } else if (option == "--rate") {
      request.host.rate = value();
    } else if (option == "--size") {
      request.size =
          chosen<SuiteSize>(option, value(), {{"standard", SuiteSize::standard}, {"quick", SuiteSize::quick}});
    } else if (option == "--fabric") {
      request.host.fabric = chosen<Fabric>(option, value(),
                                           {{"shared-memory", Fabric::shared_memory},
                                            {"tcp-loopback", Fabric::tcp_loopback},
                                            {"tcp-namespaces", Fabric::tcp_namespaces}});
    } else if (option == "--ranks") {
      const auto count = parse_count(value());
      const auto* ranks = std::get_if<std::int64_t>(&count);
      if (ranks == nullptr || *ranks < 1 || *ranks > kMostRanks) {
        throw WrongUse(fmt::format("--ranks takes a number from 1 to {}, not '{}'", kMostRanks, words[i]));
      }
      request.host.ranks = static_cast<int>(*ranks);
    } else {
      throw WrongUse(fmt::format("unknown option '{}'; --help shows them", option));
    }
  }
  if (request.suite.file.empty()) {
    throw WrongUse("where to? --out FILE");
  }
  return request;
}

int complain(int status, std::string_view sentence) {
  fmt::print(stderr, "ulysim-calibrate-host: {}\n", sentence);
  return status;
}

int guarded(const std::vector<std::string>& words) {
  try {
    const std::optional<Request> request = parse(words);
    if (!request) {
      fmt::print("{}", kHelp);
      return 0;
    }
    const auto backend = make_host_backend(request->host);
    (void)run_suite(*backend, host_plan(request->size, request->host.ranks), request->suite);
    return 0;
  } catch (const WrongUse& error) {
    return complain(kWrongInput, error.what());
  } catch (const InputError& error) {
    for (const Diagnostic& found : error.diagnostics()) {
      fmt::print(stderr, "{}\n", to_string(found));
    }
    return kWrongInput;
  } catch (const WorldError& error) {
    return complain(kWorldFailed, error.what());
  } catch (const std::exception& error) {
    return complain(kOurBug, fmt::format("internal error, please report it: {}", error.what()));
  }
}

}  // namespace
}  // namespace ulysim::calibration::host

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return ulysim::calibration::host::guarded({argv + 1, argv + argc});
}
