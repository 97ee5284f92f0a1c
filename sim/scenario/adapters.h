#pragma once

#include <string>

#include "sim/scenario/section.h"
#include "sim/scenario/training.h"

namespace ulysim::scenario {

/// Reads `trainable` ("all", or {lora: {rank, targets}}) and `base_precision`; what is not there changes nothing.
void read_adapters(Section& training, Training& out);

/// Puts the base precision beside the adapters; reports one that has no adapters.
void resolve_adapters(Section& section, const Training& training, strategies::Plan& plan);

/// "rank 16", "rank 8 of q_proj, v_proj".
[[nodiscard]] std::string text_of(const workload::Adapters& adapters);

}  // namespace ulysim::scenario
