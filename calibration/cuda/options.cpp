#include "calibration/cuda/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/base/diagnostics.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr std::string_view kUsage =
    "usage: ulysim-calibrate-cuda ACTION [OPTIONS]\n"
    "  probe                 names the GPUs and the libraries\n"
    "  check                 holds the attention library to a plain reference, with ranks sharing one GPU\n"
    "  run --out FILE.csv    checks, measures, and appends every sample as soon as it is there; what is done when "
    "options\n"
    "                        stand alone\n"
    "      --resume          continues FILE.csv\n"
    "      --only KIND,...   gemm, attention, copy, collective, layer\n"
    "      --size NAME       standard, or quick: a few of each kind, to see that all works\n"
    "      --seconds N       starts no new sample after N seconds (300)\n"
    "      --local-gpus N    one process drives N GPUs (also --ranks N); else one process per GPU: torchrun, srun and\n"
    "                        mpirun work\n"
    "      --quiet           no progress on standard error\n"
    "  plans --device FILE   asks cuDNN which attention it supports on the GPU that FILE (JSON) describes; needs no "
    "GPU\n";

[[noreturn]] void refuse(std::string message) {
  throw InputError({{.where = {.file = "command line"}, .message = std::move(message)}});
}

template <class T>
T number_of(std::string_view name, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value > T{})) {
    refuse(fmt::format("{} {} is not a number above 0", name, text));
  }
  return value;
}

Action action_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Action>, 6> kActions{{{"probe", Action::probe},
                                                                         {"check", Action::check},
                                                                         {"plans", Action::plans},
                                                                         {"run", Action::run},
                                                                         {"help", Action::help},
                                                                         {"--help", Action::help}}};
  const auto* const found =
      std::find_if(kActions.begin(), kActions.end(), [&](const auto& a) { return a.first == name; });
  if (found == kActions.end()) {
    refuse(fmt::format("unknown action '{}'", name));
  }
  return found->second;
}

std::vector<std::string> kinds_of(std::string_view list) {
  std::vector<std::string> kinds;
  for (;;) {
    const std::size_t end = list.find(',');
    const std::string_view kind = list.substr(0, end);
    const auto known = probe_kinds();
    if (std::find(known.begin(), known.end(), kind) == known.end()) {
      refuse(fmt::format("unknown kind '{}'; known: {}", kind, fmt::join(known, ", ")));
    }
    kinds.emplace_back(kind);
    if (end == std::string_view::npos) {
      return kinds;
    }
    list.remove_prefix(end + 1);
  }
}

}  // namespace

std::string_view usage() {
  return kUsage;
}

Options parse_options(std::span<const std::string_view> arguments) {
  Options options;
  if (arguments.empty()) {
    return options;
  }
  const bool bare = arguments.front().starts_with("--") && arguments.front() != "--help";
  options.action = bare ? Action::run : action_of(arguments.front());
  for (std::size_t i = bare ? 0 : 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--resume") {
      options.existing = Existing::resume;
      continue;
    }
    if (name == "--quiet") {
      options.progress = Progress::silent;
      continue;
    }
    if (i + 1 == arguments.size()) {
      refuse(fmt::format("unknown option, or one without its value: '{}'", name));
    }
    const std::string_view value = arguments[++i];
    if (name == "--out") {
      options.out = value;
    } else if (name == "--device") {
      options.device = value;
    } else if (name == "--only") {
      options.only = kinds_of(value);
    } else if (name == "--size" && (value == "standard" || value == "quick")) {
      options.size = value == "quick" ? SuiteSize::quick : SuiteSize::standard;
    } else if (name == "--size") {
      refuse(fmt::format("--size {} is neither standard nor quick", value));
    } else if (name == "--local-gpus" || name == "--ranks") {
      options.local_gpus = number_of<int>(name, value);
    } else if (name == "--seconds") {
      options.seconds = number_of<double>(name, value);
    } else {
      refuse(fmt::format("unknown option '{}'", name));
    }
  }
  if (options.action == Action::run && !options.out) {
    refuse("run needs --out FILE.csv");
  }
  if (options.action == Action::plans && !options.device) {
    refuse("plans needs --device FILE.json");
  }
  return options;
}

}  // namespace ulysim::calibration::cuda
