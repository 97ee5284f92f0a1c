#include "calibration/cuda/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/base/diagnostics.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr std::array<std::string_view, 5> kKinds{"copy", "gemm", "attention", "collective", "sequence-attention"};

constexpr std::string_view kUsage =
    "usage: ulysim-calibrate-cuda ACTION [OPTIONS]\n"
    "  probe                 names the GPUs and the libraries\n"
    "  check                 holds the attention library to a plain reference, with ranks sharing one GPU\n"
    "  run --out FILE.csv    measures, and appends every sample as soon as it is there\n"
    "      --resume          continues FILE.csv\n"
    "      --only KIND,...   copy, gemm, attention, collective, sequence-attention\n"
    "      --seconds N       starts no new sample after N seconds (300)\n"
    "      --local-gpus N    one process drives N GPUs; else one process per GPU: torchrun, srun and mpirun work\n"
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
    if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
      refuse(fmt::format("unknown kind '{}'; known: {}", kind, fmt::join(kKinds, ", ")));
    }
    kinds.emplace_back(kind);
    if (end == std::string_view::npos) {
      return kinds;
    }
    list.remove_prefix(end + 1);
  }
}

}  // namespace

std::span<const std::string_view> sample_kinds() {
  return kKinds;
}
std::string_view usage() {
  return kUsage;
}

Options parse_options(std::span<const std::string_view> arguments) {
  Options options;
  if (arguments.empty()) {
    return options;
  }
  options.action = action_of(arguments.front());
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--resume") {
      options.existing = Existing::resume;
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
    } else if (name == "--local-gpus") {
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
