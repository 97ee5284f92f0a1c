#pragma once

#include "hw_models/cost/kernel_profile.h"
#include "hw_models/kernel/kernel.h"
#include "hw_models/spec/gpu.h"

namespace ulysim::cost {

/// The equations of the roofline cost model, in seconds, for the cost model and for the fit that inverts it.
/// Every term grows with every dimension of its kernel, so the sum does (README.md).

[[nodiscard]] double gemm_seconds(const kernel::Gemm& gemm, const spec::Gpu& gpu, const KernelProfile& profile);
[[nodiscard]] double attention_seconds(const kernel::Attention& attention, const spec::Gpu& gpu,
                                       const KernelProfile& profile);
[[nodiscard]] double memory_bound_seconds(const kernel::MemoryBound& kernel, const spec::Gpu& gpu,
                                          const KernelProfile& profile);
[[nodiscard]] double kernel_seconds(const kernel::Kernel& kernel, const spec::Gpu& gpu, const KernelProfile& profile);

/// Whether the GPU multiplies in a precision. Block-scaled formats need units that apply the scales, which came with
/// those for fp4.
[[nodiscard]] bool has_rate(const spec::Gpu& gpu, kernel::Precision precision);
/// The dense peak of a precision. RangeError when the GPU has no such units.
[[nodiscard]] FlopRate peak_rate(const spec::Gpu& gpu, kernel::Precision precision);

}  // namespace ulysim::cost
