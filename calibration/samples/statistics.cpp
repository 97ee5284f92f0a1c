#include "calibration/samples/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "sim/base/check.h"
#include "sim/base/parse_quantity.h"

namespace ulysim::calibration {
namespace {

double median_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

}  // namespace

Summary summary_of(std::vector<double> values) {
  ULYSIM_CHECK(!values.empty(), "a summary of nothing");
  const double median = median_of(values);
  for (double& value : values) {
    value = std::abs(value - median);
  }
  constexpr double kSigmas = 1.4826;
  return {.median = median, .spread = kSigmas * median_of(values) / median};
}

double rounded(double value, int digits) {
  return std::get<double>(parse_number(fmt::format("{:.{}g}", value, digits)));
}

}  // namespace ulysim::calibration
