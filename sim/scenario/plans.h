#pragma once

#include <functional>
#include <string>

#include "hw_models/spec/framework.h"
#include "sim/base/diagnostics.h"
#include "sim/config/document.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/training.h"

namespace ulysim::scenario {

/// More GPUs than this are refused as not yet supported.
inline constexpr std::int64_t kMostGpus = 16384;

/// What all plans share.
struct PlanContext {
  std::int64_t gpus{};
  const workload::Transformer* model{};  ///< nullptr when it could not be read
  /// Looks a framework up, reporting what is wrong; called once per plan.
  std::function<spec::Framework(const Training&, Diagnostics&)> framework{};
};

/// One item of `plans`, over the defaults of `training`. Mistakes go to `diagnostics`.
[[nodiscard]] PlanEntry read_plan(const config::Node& node, const std::string& path, Training training,
                                  const PlanContext& context, Diagnostics& diagnostics);

/// A plan's own name: its degrees above 1 in pass order, ring options that are not the default, then what it
/// overrides ("ulysses=4,ring=2", "ulysses=8,zero=2"); "data=1" on a single GPU.
[[nodiscard]] std::string derived_name(const PlanEntry& entry);

}  // namespace ulysim::scenario
