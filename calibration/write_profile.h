#pragma once

#include <string>

#include "hw_models/cost/kernel_profile.h"

namespace ulysim::calibration {

/// YAML text in a stable order that cost::parse_kernel_profile reads back to the same profile.
[[nodiscard]] std::string write_profile(const cost::KernelProfile& profile);

}  // namespace ulysim::calibration
