#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/spec/framework.h"
#include "sim/base/infeasible.h"
#include "sim/strategies/plan.h"
#include "sim/workload/op_graph.h"
#include "sim/workload/transformer.h"

namespace ulysim::strategies {

/// What a pass may know. Never time, never a machine.
struct PlanContext {
  const workload::Transformer* model{};
  const spec::Framework* framework{};
  const Plan* plan{};
};

/// A pass over the op graph.
/// Contract: `check` gives why the plan cannot run, empty when it can; it never throws for user input. `apply`
/// requires check() empty; it shards tensors and inserts communication, keeps verify_shapes() true, and is the
/// identity when its degree is 1 or its option off.
class Strategy {
 public:
  virtual ~Strategy() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string summary() const = 0;
  [[nodiscard]] virtual std::vector<Infeasible> check(const PlanContext& context) const = 0;
  virtual void apply(const PlanContext& context, workload::OpGraph& graph) const = 0;
};

/// The passes in the order in which they run: that order is part of their contract.
[[nodiscard]] std::span<const Strategy* const> strategies();

/// The pass of that name; nullptr when the catalogue has none.
[[nodiscard]] const Strategy* find_strategy(std::string_view name);

/// Every reason of every pass, and the passes that the plan asks for in vain.
[[nodiscard]] std::vector<Infeasible> check(const PlanContext& context);

/// The parallel graph of a plan: all passes over `graph`, verified after each (InternalError names the pass),
/// then lifetimes placed and the whole verified. Requires check() empty.
[[nodiscard]] workload::OpGraph parallelize(const PlanContext& context, workload::OpGraph graph);

}  // namespace ulysim::strategies
