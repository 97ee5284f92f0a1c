#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/run_result.h"

namespace ulysim::results {

/// One plan at one point of a sweep. Figures stand in the units in which they are written, so that a result that was
/// saved and read again is the same to the last bit.
struct SweepFigures {
  Fit fit{Fit::yes};
  double step_time_s{};
  double tokens_per_s_per_gpu{};
  double mfu{};
  double peak_gpu_memory_gib{};
  double peak_host_memory_gib_per_node{};
  double exposed_communication_s{};
  std::string bottleneck{};
};

struct SweepPlan {
  std::string name{};                     ///< at this point: "ulysses=16" of the sweep's "ulysses=all"
  std::optional<SweepFigures> figures{};  ///< absent when it cannot run
  std::string reason{};                   ///< why it cannot run, does not fit or is risky; else empty

  [[nodiscard]] bool fits() const { return figures && figures->fit != Fit::no; }
};

struct SweepPoint {
  std::vector<std::size_t> at{};   ///< index of the value on every axis
  std::vector<SweepPlan> plans{};  ///< as many as the sweep has
};

struct SweepAxis {
  std::string key{};
  std::vector<std::string> values{};
};

struct SweepResult {
  std::string name{};
  std::vector<SweepAxis> axes{};
  std::vector<std::string> plans{};
  std::vector<SweepPoint> points{};  ///< in order of `at`, the last axis fastest
};

/// The plan with the most tokens/s/GPU among those that fit, the first of equals; none when none fits.
[[nodiscard]] std::optional<std::size_t> winner(const SweepPoint& point);

/// The number of a point in a sweep of these axes, the last axis fastest.
[[nodiscard]] std::size_t number_of(const std::vector<SweepAxis>& axes, const std::vector<std::size_t>& at);

}  // namespace ulysim::results
