#include "calibration/least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace ulysim::calibration {
namespace {

constexpr int kIterations = 200;
constexpr double kDerivativeStep = 1e-5;
constexpr double kFirstDamping = 1e-2;
constexpr double kLeastDamping = 1e-12;
constexpr double kMostDamping = 1e10;
constexpr double kConverged = 1e-12;

double huber_cost(const std::vector<double>& residuals, const std::vector<double>& weights) {
  double cost = 0.0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double r = std::abs(residuals[i]);
    cost += weights[i] * (r <= kHuberThreshold ? 0.5 * r * r : kHuberThreshold * (r - 0.5 * kHuberThreshold));
  }
  return cost;
}

double huber_weight(double residual) {
  const double r = std::abs(residual);
  return r <= kHuberThreshold ? 1.0 : kHuberThreshold / r;
}

Eigen::Index at(std::size_t index) {
  return static_cast<Eigen::Index>(index);
}

// Columns are scaled by the parameter's range, so that one damping suits fractions and microseconds.
Eigen::MatrixXd jacobian(const Residuals& residuals, const std::vector<double>& x, const std::vector<double>& r0,
                         const std::vector<Unknown>& unknowns) {
  Eigen::MatrixXd j(at(r0.size()), at(x.size()));
  for (std::size_t p = 0; p < x.size(); ++p) {
    const double range = unknowns[p].high - unknowns[p].low;
    const double step = x[p] + kDerivativeStep * range <= unknowns[p].high ? kDerivativeStep : -kDerivativeStep;
    std::vector<double> moved = x;
    moved[p] += step * range;
    const std::vector<double> r = residuals(moved);
    for (std::size_t i = 0; i < r0.size(); ++i) {
      j(at(i), at(p)) = (r[i] - r0[i]) / step;
    }
  }
  return j;
}

}  // namespace

std::vector<double> least_squares(const Residuals& residuals, const std::vector<double>& weights,
                                  const std::vector<Unknown>& unknowns) {
  std::vector<double> x;
  for (const Unknown& unknown : unknowns) {
    ULYSIM_CHECK(unknown.low < unknown.high, "an unknown needs a range, not [{}, {}]", unknown.low, unknown.high);
    x.push_back(std::clamp(unknown.start, unknown.low, unknown.high));
  }
  std::vector<double> r = residuals(x);
  ULYSIM_CHECK(r.size() == weights.size(), "{} residuals, {} weights", r.size(), weights.size());
  double cost = huber_cost(r, weights);
  double damping = kFirstDamping;
  for (int iteration = 0; iteration < kIterations && damping < kMostDamping; ++iteration) {
    const Eigen::MatrixXd j = jacobian(residuals, x, r, unknowns);
    Eigen::VectorXd w(at(r.size()));
    Eigen::VectorXd e(at(r.size()));
    for (std::size_t i = 0; i < r.size(); ++i) {
      w(at(i)) = weights[i] * huber_weight(r[i]);
      e(at(i)) = r[i];
    }
    Eigen::MatrixXd normal = j.transpose() * w.asDiagonal() * j;
    const Eigen::VectorXd gradient = j.transpose() * w.asDiagonal() * e;
    const double scale = std::max(normal.diagonal().maxCoeff(), 1e-300);
    normal.diagonal().array() += damping * scale;
    const Eigen::VectorXd step = normal.ldlt().solve(-gradient);
    std::vector<double> moved = x;
    for (std::size_t p = 0; p < x.size(); ++p) {
      const double range = unknowns[p].high - unknowns[p].low;
      moved[p] = std::clamp(x[p] + step(at(p)) * range, unknowns[p].low, unknowns[p].high);
    }
    const std::vector<double> moved_r = residuals(moved);
    const double moved_cost = huber_cost(moved_r, weights);
    if (moved_cost < cost) {
      const bool converged = cost - moved_cost <= kConverged * cost;
      x = moved;
      r = moved_r;
      cost = moved_cost;
      damping = std::max(damping / 5.0, kLeastDamping);
      if (converged) {
        break;
      }
    } else {
      damping *= 4.0;
    }
  }
  return x;
}

}  // namespace ulysim::calibration
