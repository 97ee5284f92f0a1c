#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "calibration/backend.h"

namespace ulysim::calibration {

/// "gemm", "attention-forward", "attention-backward", "copy", "all-to-all", "all-gather", "reduce-scatter",
/// "send-recv", "ulysses-layer", "ring-layer".
[[nodiscard]] std::string kind_of(const Probe& probe);

/// All of a probe but its kind, as `name=value` with one blank between: "m=512 n=512 k=512", "bytes=65536",
/// "mask=causal tokens=1024 heads=8 kv_heads=8 head_dim=64".
[[nodiscard]] std::string shape_of(const Probe& probe);

/// The probe of a kind and shape as written above; nothing when either cannot be read.
[[nodiscard]] std::optional<Probe> probe_of(std::string_view kind, std::string_view shape);

}  // namespace ulysim::calibration
