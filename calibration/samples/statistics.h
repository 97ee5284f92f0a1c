#pragma once

#include <vector>

namespace ulysim::calibration {

/// What repetitions of one measurement say, robust against a few that something disturbed.
struct Summary {
  double median{};
  double spread{};  ///< 1.4826 · median absolute deviation / median: one sigma of a normal distribution, relative
};

/// Of at least one positive value; the median of an even number is the mean of the middle two.
[[nodiscard]] Summary summary_of(std::vector<double> values);

/// The nearest number of so many significant digits, which prints short and reads back to itself.
[[nodiscard]] double rounded(double value, int digits);

}  // namespace ulysim::calibration
