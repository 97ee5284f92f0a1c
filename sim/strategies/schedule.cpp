#include <fmt/format.h>

#include <map>
#include <tuple>

#include "sim/base/check.h"
#include "sim/strategies/stages.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// The last pass: puts what each stage does into the order of the table. What runs within a cell is settled by then.
class SchedulePass final : public Strategy {
 public:
  std::string name() const override { return "schedule"; }
  std::string summary() const override {
    return "the order of micro-batches: 1F1B, or interleaved over virtual stages";
  }

  std::vector<Infeasible> check(const PlanContext&) const override { return {}; }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    const std::int64_t stages = context.plan->mesh.size(MeshAxis::pipeline);
    if (stages == 1) {
      return;
    }
    const PipelineShape shape{
        .stages = stages, .chunks = context.plan->virtual_stages, .micro_batches = graph.micro_batches};
    for (Role& role : graph.roles) {
      arrange(shape, role);
    }
  }

 private:
  static void arrange(const PipelineShape& shape, Role& role) {
    using Key = std::tuple<Phase, std::int64_t, std::int64_t>;  // phase, chunk, micro-batch
    std::map<Key, std::vector<Instance>> cells;
    std::vector<Instance> update;
    for (const Instance& instance : role.program) {
      if (instance.phase == Phase::update) {
        update.push_back(instance);
      } else {
        cells[{instance.phase, instance.virtual_stage / shape.stages, instance.micro_batch}].push_back(instance);
      }
    }
    role.program.clear();
    for (const Cell& cell : one_forward_one_backward(shape, role.stage)) {
      const auto found = cells.find({cell.phase, cell.chunk, cell.micro_batch});
      ULYSIM_CHECK(found != cells.end(), "{} has no {} of chunk {} and micro-batch {}", role.name,
                   workload::name(cell.phase), cell.chunk, cell.micro_batch);
      role.program.insert(role.program.end(), found->second.begin(), found->second.end());
      cells.erase(found);
    }
    ULYSIM_CHECK(cells.empty(), "the schedule of {} leaves {} cells out", role.name, cells.size());
    role.program.insert(role.program.end(), update.begin(), update.end());
  }
};

}  // namespace

const Strategy& schedule_strategy() {
  static const SchedulePass strategy;
  return strategy;
}

}  // namespace ulysim::strategies
