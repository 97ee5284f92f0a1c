#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/scenario/scenario.h"
#include "sim/study/validate_convention.h"

namespace ulysim::study {

enum class Metric : std::uint8_t {
  step_time_s,
  tokens_per_s_per_gpu,
  tokens_per_s,
  tflops_per_gpu,
  mfu,
  peak_gpu_memory_gib,     ///< of the device, as nvidia-smi shows it
  peak_gpu_allocated_gib,  ///< torch max_memory_allocated
  peak_gpu_reserved_gib,   ///< torch max_memory_reserved
  peak_host_memory_gib_per_node,
  max_sequence_length,
  sequence_attention_s,  ///< attention kernels, packing and exchanges of Ulysses or a ring, one after the other
};
[[nodiscard]] std::span<const std::string> metric_names();

/// What became of the run: a figure was printed, it ran out of memory, or it is only known to have run.
enum class Outcome : std::uint8_t { measured, oom, fits };

/// A length that is known to train and a longer one that is not: the longest lies in between.
struct Bracket {
  std::int64_t fits_at{};
  std::int64_t fails_at{};
};

/// One row of a file of measurements.
struct Measurement {
  std::string id{};
  Outcome outcome{};
  Metric metric{};
  std::optional<double> measured{};        ///< in the unit of `metric`; absent where only the outcome is known
  std::optional<Bracket> bracket{};        ///< of `max_sequence_length`, in place of `measured`
  std::optional<Convention> convention{};  ///< of FLOPs; absent: the simulator's own
  std::string note{};
  std::optional<scenario::Scenario> scenario{};  ///< absent: asks for what is not yet supported; `refused` says what
  std::string refused{};
};

/// One file: one publication.
struct Publication {
  std::string name{};
  std::vector<Measurement> rows{};  ///< in file order
};

/// Reads scenarios/published/*.yaml (its README has the format). Mistakes, those of the scenarios that the rows
/// make included, go to `diagnostics`, each at its place in `path`. A row of which every mistake is "not yet supported"
/// is none: it stays, refused.
[[nodiscard]] Publication read_publication(const std::filesystem::path& path, const std::filesystem::path& data,
                                           Diagnostics& diagnostics);

}  // namespace ulysim::study
