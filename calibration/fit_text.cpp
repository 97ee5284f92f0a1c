// The report for people: first how far off, then which samples, then how sure the parameters are.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibration/fit_report.h"

namespace ulysim::calibration {
namespace {

constexpr std::size_t kWorstShown = 10;
constexpr double kStrongCorrelation = 0.9;

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}%", 100.0 * *value) : "-";
}

std::string groups_text(const std::vector<GroupErrors>& groups) {
  std::string text =
      "error of the predicted time                                    fitted                    held out\n"
      "group                                          points  median     p90   worst      median     p90\n";
  for (const GroupErrors& g : groups) {
    text += fmt::format("{:<46} {:>6} {:>7} {:>7} {:>7}     {:>7} {:>7}\n", g.name, g.points, percent(g.median),
                        percent(g.p90), percent(g.worst), percent(g.held_out_median), percent(g.held_out_p90));
  }
  return text;
}

/// As rates or times compare: how far the fitted figure is from the measured one.
double distance(const Residual& r) {
  return std::abs(std::log(r.fitted / r.measured));
}

std::string residuals_text(std::vector<Residual> residuals) {
  std::stable_sort(residuals.begin(), residuals.end(),
                   [](const Residual& a, const Residual& b) { return distance(a) > distance(b); });
  residuals.resize(std::min(residuals.size(), kWorstShown));
  std::string text = "\nfarthest off (all residuals: --json)\n";
  for (const Residual& r : residuals) {
    text += fmt::format("  {:<30} {:<64} measured {:>9.4g}, fitted {:>9.4g} {}\n", r.group, r.label, r.measured,
                        r.fitted, r.unit);
  }
  return text;
}

double deviation(const Covariance& c, std::size_t p) {
  return std::sqrt(std::max(0.0, c.matrix[p * c.parameters.size() + p]));
}

std::string covariance_text(const Covariance& c) {
  std::string text = fmt::format("  {}\n", c.part);
  const std::size_t n = c.parameters.size();
  for (std::size_t p = 0; p < n; ++p) {
    const double sigma = deviation(c, p);
    text += fmt::format("    {:<34} {:>11.4g} {}\n", c.parameters[p], c.values[p],
                        sigma > 0.0 ? fmt::format("+- {:.2g}", sigma) : "at a bound, or not told");
  }
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t q = p + 1; q < n; ++q) {
      const double scale = deviation(c, p) * deviation(c, q);
      const double correlation = scale > 0.0 ? c.matrix[p * n + q] / scale : 0.0;
      if (std::abs(correlation) >= kStrongCorrelation) {
        text += fmt::format("    {} and {} are told apart badly: correlation {:.2f}\n", c.parameters[p],
                            c.parameters[q], correlation);
      }
    }
  }
  return text;
}

}  // namespace

std::string to_text(const FitReport& report) {
  std::string text = groups_text(report.groups) + residuals_text(report.residuals);
  text += "\nparameters as fitted, one standard error (their sources: ulysim calibrate show)\n";
  for (const Covariance& covariance : report.covariances) {
    text += covariance_text(covariance);
  }
  return text;
}

}  // namespace ulysim::calibration
