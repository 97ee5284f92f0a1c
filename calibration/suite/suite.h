#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calibration/backend.h"
#include "calibration/suite/sample_table.h"

namespace ulysim::calibration {

/// `quick`: a few seconds, enough to see that all works. `standard`: what a fit needs.
enum class SuiteSize : std::uint8_t { quick, standard };

struct Plan {
  std::vector<Probe> check{};    ///< small ones, compared with the reference before anything is timed
  std::vector<Probe> measure{};  ///< in this order
};

/// Products, attention kernels, copies, collectives, and layers for `ranks` (those that the ranks cannot share are
/// left out). Layers have lengths that no kernel sample has: they are what the fit is held against.
[[nodiscard]] Plan standard_plan(SuiteSize size, int ranks);

/// An existing samples file: refuse to touch it, or measure only what it lacks.
enum class Existing : std::uint8_t { refuse, resume };

enum class Progress : std::uint8_t { silent, on_stderr };

struct SuiteOptions {
  std::filesystem::path file{};
  Existing existing{Existing::refuse};
  Progress progress{Progress::silent};
  double seconds_per_probe{0.2};  ///< repetitions are chosen to take about that long
  int warm_up{2};
  int fewest{5};
  int most{100};
  double tolerance{1e-5};    ///< of `check`, and NaN never passes
  double calm_spread{0.05};  ///< above it a measurement is repeated, and the calmest kept
  int tries{3};
};

/// Checks, then measures what the file lacks and appends each row at once (an interruption loses one measurement).
/// Returns all rows of the file that belong to the plan, in its order. WorldError when a check fails, a rank dies, or
/// the file cannot be written; InputError when it exists and cannot be read or resuming was not asked for.
[[nodiscard]] std::vector<ProbeSample> run_suite(Backend& backend, const Plan& plan, const SuiteOptions& options);

}  // namespace ulysim::calibration
