#pragma once

#include <vector>

#include "hw_models/spec/framework.h"
#include "sim/base/infeasible.h"
#include "sim/strategies/plan.h"

namespace ulysim::strategies {

/// What the optimizer of a plan holds and moves, bytes per parameter of the shard: the framework profile's figures for
/// AdamW with fp32 states, less what another optimizer or other types save.
struct OptimizerBytes {
  double weight{};
  double gradient{};
  double states{};     ///< master weight and moments
  double traffic{};    ///< on the GPU, per step; the search for infinities of fp16 included
  double transient{};  ///< further GPU memory while it runs
  double host{};       ///< in host memory with the optimizer offloaded
  double host_traffic{};
};
/// With `moments` moments (AdamW: 2). Requires reasons_against() empty.
[[nodiscard]] OptimizerBytes optimizer_bytes(const spec::Framework& framework, OptimizerStates states,
                                             std::int64_t moments);
/// For all parameters but the matrices that Muon orthogonalises, and for those.
[[nodiscard]] OptimizerBytes optimizer_bytes(const spec::Framework& framework, const Plan& plan);
[[nodiscard]] OptimizerBytes matrix_bytes(const spec::Framework& framework, const Plan& plan);

/// Why the stack has no such optimizer.
[[nodiscard]] std::vector<Infeasible> reasons_against(const spec::Framework& framework, const Plan& plan);

}  // namespace ulysim::strategies
