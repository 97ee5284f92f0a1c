#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// Replicas of the model, each with sequences of its own. Gradients become partial; ZeRO reduces them.
class Data final : public Strategy {
 public:
  std::string name() const override { return "data"; }
  std::string summary() const override { return "replicas on different sequences (what is left of the GPUs)"; }

  std::vector<Infeasible> check(const PlanContext&) const override { return {}; }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (context.plan->mesh.size(MeshAxis::data) > 1) {
      split_samples(graph, Dim::batch, MeshAxis::data);
    }
  }
};

}  // namespace

const Strategy& data_strategy() {
  static const Data strategy;
  return strategy;
}

}  // namespace ulysim::strategies
