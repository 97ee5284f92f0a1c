#include <fmt/format.h>

#include "calibration/commands.h"
#include "calibration/fit_report.h"

namespace ulysim::calibration {

std::string show(const cost::KernelProfile& profile) {
  std::string out = fmt::format("{}: {}\n", profile.name, profile.summary);
  std::string part;
  for (const Parameter& parameter : parameters_of(profile)) {
    if (parameter.part != part) {
      part = parameter.part;
      out += fmt::format("\n{}\n", part);
    }
    const std::string value =
        fmt::format("{:.4g}{}{}", parameter.value, parameter.unit.empty() ? "" : " ", parameter.unit);
    const std::string spread = parameter.spread ? fmt::format("±{:.1f}%", 100.0 * *parameter.spread) : "";
    out += fmt::format("  {:<22} {:>14} {:>7}  {:<9}  {}\n", parameter.name, value, spread, parameter.kind,
                       parameter.source);
  }
  return out;
}

}  // namespace ulysim::calibration
