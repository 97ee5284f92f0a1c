#pragma once

#include "sim/scenario/section.h"
#include "sim/strategies/plan.h"

namespace ulysim::scenario {

/// `attention.mask`: full, causal, {sliding_window: N} or {block_sparse: {…}}. What stands there replaces the whole
/// mask of `plan`; documents are no part of it.
void read_mask(Section& attention, strategies::Plan& plan);

/// As a scenario writes it.
[[nodiscard]] std::string mask_text(const strategies::Plan& plan);

}  // namespace ulysim::scenario
