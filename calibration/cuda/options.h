#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/suite/suite.h"

namespace ulysim::calibration::cuda {

enum class Action : std::uint8_t { probe, check, plans, run, help };

struct Options {
  Action action{Action::help};
  std::optional<std::filesystem::path> out{};
  Existing existing{Existing::refuse};
  Progress progress{Progress::on_stderr};
  SuiteSize size{SuiteSize::standard};
  std::optional<int> local_gpus{};
  std::vector<std::string> only{};  ///< kinds of samples; empty: all
  double seconds{300.0};            ///< after which no new sample is started
  std::optional<std::filesystem::path> device{};
};

[[nodiscard]] std::string_view usage();

/// Options without an action are those of `run`, as `ulysim calibrate run` gives them. Throws InputError.
[[nodiscard]] Options parse_options(std::span<const std::string_view> arguments);

}  // namespace ulysim::calibration::cuda
