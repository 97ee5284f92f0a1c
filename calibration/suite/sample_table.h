#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/backend.h"

namespace ulysim::calibration {

/// One measured probe: a row of a samples file.
struct ProbeSample {
  Probe probe{};
  int ranks{};
  std::string fabric{};
  double seconds{};  ///< median
  double spread{};   ///< relative, one sigma
  int repetitions{};
  std::string source{};  ///< backend and machine, no commas
};

/// `kind,shape,ranks,fabric,seconds,spread,repetitions,source`
[[nodiscard]] std::string_view sample_header();
/// With its end of line.
[[nodiscard]] std::string sample_row(const ProbeSample& sample);

/// InputError with every row that cannot be read. A last line without an end (an interrupted run) is left out.
[[nodiscard]] std::vector<ProbeSample> parse_probe_samples(std::string_view text, const std::string& file);
[[nodiscard]] std::vector<ProbeSample> load_probe_samples(const std::filesystem::path& path);

/// What makes two measurements the same one: kind, shape, ranks, fabric.
[[nodiscard]] std::string key_of(const Probe& probe, int ranks, std::string_view fabric);

}  // namespace ulysim::calibration
