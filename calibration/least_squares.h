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

/// What a fit found, and how sure it is.
struct Estimate {
  std::vector<double> values{};
  /// Row by row, in the units of the values: (JᵀWJ)⁻¹ JᵀW diag(r²) WJ (JᵀWJ)⁻¹ · n/(n − p), which holds whatever the
  /// residuals' own variances are (White, Econometrica 48, 1980). Zero in the rows and columns of a value at a bound.
  std::vector<double> covariance{};
};

/// Robust bounded least squares: Levenberg-Marquardt (Marquardt 1963) on numeric derivatives, with Huber weights
/// beyond `kHuberThreshold` and steps clamped to the bounds. `weights` multiply the squared residuals, one each.
/// Deterministic: a fixed number of iterations at most, no randomness.
[[nodiscard]] Estimate least_squares(const Residuals& residuals, const std::vector<double>& weights,
                                     const std::vector<Unknown>& unknowns);

/// A linear model of one measurement: the sum of feature times parameter is to be `target`.
struct LinearRow {
  std::vector<double> features{};
  double target{};
};

/// Parameters of at least 0 with the least sum of squared relative errors (Lawson and Hanson, Solving Least Squares
/// Problems, 1974, ch. 23). Targets above 0, as many features in each row.
[[nodiscard]] Estimate non_negative_least_squares(const std::vector<LinearRow>& rows);

/// Relative error beyond which a sample pulls linearly instead of quadratically.
inline constexpr double kHuberThreshold = 0.1;

}  // namespace ulysim::calibration
