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

/// Of the parameters that `free` names; the others' rows and columns stay zero.
std::vector<double> sandwich(const Eigen::MatrixXd& j, const Eigen::VectorXd& w, const Eigen::VectorXd& r,
                             const std::vector<std::size_t>& free, std::size_t parameters) {
  std::vector<double> covariance(parameters * parameters, 0.0);
  const auto rows = static_cast<std::size_t>(j.rows());
  if (free.empty() || rows <= free.size()) {
    return covariance;
  }
  Eigen::MatrixXd used(j.rows(), at(free.size()));
  for (std::size_t p = 0; p < free.size(); ++p) {
    used.col(at(p)) = j.col(at(free[p]));
  }
  const Eigen::MatrixXd bread =
      (used.transpose() * w.asDiagonal() * used).completeOrthogonalDecomposition().pseudoInverse();
  const Eigen::VectorXd spread = (w.array() * r.array()).square();
  const Eigen::MatrixXd filling = used.transpose() * spread.asDiagonal() * used;
  const double lost = static_cast<double>(rows) / static_cast<double>(rows - free.size());
  const Eigen::MatrixXd result = lost * bread * filling * bread;
  for (std::size_t p = 0; p < free.size(); ++p) {
    for (std::size_t q = 0; q < free.size(); ++q) {
      covariance[free[p] * parameters + free[q]] = result(at(p), at(q));
    }
  }
  return covariance;
}

/// Of least_squares(): the Jacobian is per range of each parameter.
std::vector<double> covariance_at(const Residuals& residuals, const std::vector<double>& weights,
                                  const std::vector<double>& x, const std::vector<Unknown>& unknowns) {
  const std::vector<double> r = residuals(x);
  const Eigen::MatrixXd j = jacobian(residuals, x, r, unknowns);
  Eigen::VectorXd w(at(r.size()));
  Eigen::VectorXd e(at(r.size()));
  for (std::size_t i = 0; i < r.size(); ++i) {
    w(at(i)) = weights[i] * huber_weight(r[i]);
    e(at(i)) = r[i];
  }
  std::vector<std::size_t> free;
  for (std::size_t p = 0; p < x.size(); ++p) {
    if (x[p] > unknowns[p].low && x[p] < unknowns[p].high) {
      free.push_back(p);
    }
  }
  // Inverted per range: microseconds and thousands of keys meet in one matrix.
  std::vector<double> covariance = sandwich(j, w, e, free, x.size());
  for (std::size_t p = 0; p < x.size(); ++p) {
    for (std::size_t q = 0; q < x.size(); ++q) {
      covariance[p * x.size() + q] *= (unknowns[p].high - unknowns[p].low) * (unknowns[q].high - unknowns[q].low);
    }
  }
  return covariance;
}

}  // namespace

Estimate least_squares(const Residuals& residuals, const std::vector<double>& weights,
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
  return {.values = x, .covariance = covariance_at(residuals, weights, x, unknowns)};
}

Estimate non_negative_least_squares(const std::vector<LinearRow>& rows) {
  ULYSIM_CHECK(!rows.empty() && !rows.front().features.empty(), "a linear fit of nothing");
  const std::size_t parameters = rows.front().features.size();
  Eigen::MatrixXd a(at(rows.size()), at(parameters));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ULYSIM_CHECK(rows[i].features.size() == parameters && rows[i].target > 0.0, "row {} of a linear fit is odd", i);
    for (std::size_t p = 0; p < parameters; ++p) {
      a(at(i), at(p)) = rows[i].features[p] / rows[i].target;
    }
  }
  // Columns of length 1: seconds and seconds per byte meet in one matrix. A feature that is nowhere stays as it is.
  const Eigen::VectorXd lengths =
      a.colwise().norm().transpose().unaryExpr([](double length) { return length > 0.0 ? length : 1.0; });
  a = a * lengths.cwiseInverse().asDiagonal();
  const Eigen::VectorXd one = Eigen::VectorXd::Ones(at(rows.size()));
  std::vector<std::size_t> free;
  Eigen::VectorXd x = Eigen::VectorXd::Zero(at(parameters));
  const auto solve = [&] {
    Eigen::MatrixXd used(a.rows(), at(free.size()));
    for (std::size_t p = 0; p < free.size(); ++p) {
      used.col(at(p)) = a.col(at(free[p]));
    }
    return Eigen::VectorXd(used.colPivHouseholderQr().solve(one));
  };
  constexpr double kGradient = 1e-10;
  for (std::size_t round = 0; round < 3 * parameters; ++round) {
    const Eigen::VectorXd gradient = a.transpose() * (one - a * x);
    std::size_t best = parameters;
    for (std::size_t p = 0; p < parameters; ++p) {
      const bool is_free = std::find(free.begin(), free.end(), p) != free.end();
      if (!is_free && gradient(at(p)) > kGradient && (best == parameters || gradient(at(p)) > gradient(at(best)))) {
        best = p;
      }
    }
    if (best == parameters) {
      break;
    }
    free.push_back(best);
    // Back towards the last feasible point as far as the first parameter that would turn negative; it is let go.
    for (Eigen::VectorXd moved = solve(); !free.empty(); moved = solve()) {
      double step = 1.0;
      for (std::size_t p = 0; p < free.size(); ++p) {
        const double now = x(at(free[p]));
        if (moved(at(p)) < 0.0 && now - moved(at(p)) > 0.0) {
          step = std::min(step, now / (now - moved(at(p))));
        }
      }
      for (std::size_t p = 0; p < free.size(); ++p) {
        x(at(free[p])) += step * (moved(at(p)) - x(at(free[p])));
      }
      if (step >= 1.0) {
        break;
      }
      std::erase_if(free, [&](std::size_t p) { return x(at(p)) <= 1e-14; });
      for (std::size_t p = 0; p < parameters; ++p) {
        if (std::find(free.begin(), free.end(), p) == free.end()) {
          x(at(p)) = 0.0;
        }
      }
    }
  }
  const Eigen::VectorXd error = a * x - one;
  std::vector<double> covariance = sandwich(a, one, error, free, parameters);
  Estimate estimate{.values = std::vector<double>(parameters)};
  for (std::size_t p = 0; p < parameters; ++p) {
    estimate.values[p] = x(at(p)) / lengths(at(p));
    for (std::size_t q = 0; q < parameters; ++q) {
      covariance[p * parameters + q] /= lengths(at(p)) * lengths(at(q));
    }
  }
  estimate.covariance = std::move(covariance);
  return estimate;
}

}  // namespace ulysim::calibration
