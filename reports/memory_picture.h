#pragma once

#include <string>

#include "reports/writer.h"
#include "sim/results/run_result.h"

namespace ulysim::reports {

/// The memory of one step as text, `style.width` columns at most: the GPU's peak as a bar against its capacity with
/// its parts by name, the allocated bytes over the step as a curve, and the host's memory as a bar. Every line ends
/// in a newline. Unicode blocks, or ASCII where the style has none.
[[nodiscard]] std::string memory_picture(const results::Figures& figures, const Style& style);

}  // namespace ulysim::reports
