#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "calibration/backend.h"
#include "calibration/samples/sample_file.h"

namespace ulysim::calibration {

/// `quick`: a few seconds, enough to see that all works. `standard`: what a fit needs.
enum class SuiteSize : std::uint8_t { quick, standard };

struct Plan {
  std::vector<Probe> check{};    ///< small ones, compared with the reference before anything is timed
  std::vector<Probe> measure{};  ///< in this order
};

/// For processes of this machine: products, attention kernels, copies, collectives, and layers for `ranks` (those that
/// the ranks cannot share are left out). Layers have lengths that no kernel sample has: they are what the fit is held
/// against.
[[nodiscard]] Plan host_plan(SuiteSize size, int ranks);

/// For GPUs: the shapes of Llama-3 layers, copies within a GPU and across PCIe, every way to exchange among `ranks`.
[[nodiscard]] Plan cuda_plan(SuiteSize size, int ranks);

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
  std::optional<double> seconds{};  ///< after which no new probe is started
};

/// Checks, then measures what the file lacks and appends each row at once (an interruption loses one measurement).
/// Returns all rows of the file that belong to the plan, in its order; probes that are impossible here, or too late,
/// are missing. WorldError when a check fails, a rank dies, or the file cannot be written; InputError when it exists
/// and cannot be read or resuming was not asked for.
[[nodiscard]] std::vector<Sample> run_suite(Backend& backend, const Plan& plan, const SuiteOptions& options);

}  // namespace ulysim::calibration
