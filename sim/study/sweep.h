#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>

#include "sim/results/sweep_result.h"
#include "sim/scenario/grid.h"

namespace ulysim::study {

struct SweepOptions {
  std::filesystem::path data{};  ///< holds `catalog` and `scenarios`
  std::size_t jobs{1};           ///< threads
  std::stop_token stop{};        ///< ends the sweep once the simulations that run are done
};

/// Takes a finished point; called by one thread at a time, in the order in which points end.
using OnPoint = std::function<void(results::SweepPoint)>;

/// Simulates the points with these numbers. What is in a point does not depend on the number of threads. A plan that
/// cannot be read at a point, cannot run, or leaves the range of the simulator is a value with its reason.
void sweep(const scenario::Grid& grid, std::span<const std::size_t> points, const SweepOptions& options,
           const OnPoint& on_point);

/// One point.
[[nodiscard]] results::SweepPoint simulate_point(const scenario::Grid& grid, std::size_t point,
                                                 scenario::Library& library);

}  // namespace ulysim::study
