#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/workload/transformer.h"

namespace ulysim::study {

/// How a publication counts the FLOPs of a training step; printed TFLOP/s of one run differ by up to 2.7× in this
/// alone. causal: the pairs that the mask lets through; full: all S² of them. x3: one forward and a backward of twice
/// its work (model FLOPs); x4: the layers' forward once more, as full recompute executes it (the loss head is not
/// recomputed).
enum class Convention : std::uint8_t { causal_x3, full_x3, causal_x4, full_x4 };

/// "causal-x3", "full-x3", "causal-x4", "full-x4", in the order of the enum.
[[nodiscard]] std::span<const std::string> convention_names();

/// FLOPs of one sequence of `tokens`, forward and backward. full-x4 is Megatron's formula (arXiv 2104.04473, eq. 3)
/// 96·s·L·h²·(1 + s/6h + V/16Lh) written out, so that it holds for gated MLPs and grouped queries too.
[[nodiscard]] double convention_flops(const workload::Transformer& model, std::int64_t tokens, Convention convention);

}  // namespace ulysim::study
