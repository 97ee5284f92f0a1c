#pragma once

#include <functional>
#include <vector>

namespace ulysim::calibration {

/// A parameter to be found in [low, high], from `start`.
struct Unknown {
  double start{};
  double low{};
  double high{};
};

/// Relative errors of a model for given parameter values; always as many.
using Residuals = std::function<std::vector<double>(const std::vector<double>& parameters)>;

/// Robust bounded least squares: Levenberg-Marquardt (Marquardt 1963) on numeric derivatives, with Huber weights
/// beyond `kHuberThreshold` and steps clamped to the bounds. `weights` multiply the squared residuals, one each.
/// Deterministic: a fixed number of iterations at most, no randomness.
[[nodiscard]] std::vector<double> least_squares(const Residuals& residuals, const std::vector<double>& weights,
                                                const std::vector<Unknown>& unknowns);

/// Relative error beyond which a sample pulls linearly instead of quadratically.
inline constexpr double kHuberThreshold = 0.1;

}  // namespace ulysim::calibration
