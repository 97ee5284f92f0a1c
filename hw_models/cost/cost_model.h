#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hw_models/cost/kernel_profile.h"
#include "hw_models/kernel/kernel.h"
#include "hw_models/spec/gpu.h"
#include "sim/base/quantity.h"

namespace ulysim::cost {

/// How long a kernel takes on a GPU that does nothing else.
/// Contract: a pure function of the kernel; more work of the same shape class never takes less time;
/// never under the data-sheet bound flops/peak or bytes/bandwidth; uses + − × ÷ √ and tables only.
class CostModel {
 public:
  virtual ~CostModel() = default;
  [[nodiscard]] virtual Duration time(const kernel::Kernel& kernel) const = 0;
};

/// The roofline with fitted efficiencies: launch + max(flops / (peak · efficiency(shape)), bytes / (bandwidth ·
/// efficiency)).
[[nodiscard]] std::unique_ptr<CostModel> make_cost_model(const spec::Gpu& gpu, const KernelProfile& profile);

}  // namespace ulysim::cost
