#pragma once

#include "hw_models/spec/framework.h"
#include "sim/base/diagnostics.h"
#include "sim/config/document.h"

namespace ulysim::spec {

/// Reads a framework profile, all but its name; mistakes go to `diagnostics`.
[[nodiscard]] Framework read_framework(const config::Node& document, Diagnostics& diagnostics);

}  // namespace ulysim::spec
