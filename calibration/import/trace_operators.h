#pragma once

#include <optional>

#include "calibration/samples/probe.h"
#include "sim/config/document.h"

namespace ulysim::calibration {

/// What the kernels compute that an operator of PyTorch launched: a bf16 product (aten::mm, addmm, bmm) or fused
/// attention, by the shapes of its inputs. Nothing for other operators and where shapes were not recorded.
[[nodiscard]] std::optional<Probe> probe_of_operator(const config::Node& event);

}  // namespace ulysim::calibration
