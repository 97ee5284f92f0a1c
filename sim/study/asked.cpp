#include "sim/study/asked.h"

#include "sim/study/provenance.h"

namespace ulysim::study {

results::StudyResult study_of(const scenario::Scenario& scenario, const Machine& machine) {
  return {
      .scenario = {.name = scenario.name,
                   .model = scenario.model_name,
                   .node = scenario.cluster.node.name,
                   .gpu = scenario.cluster.gpu.name,
                   .nodes = scenario.cluster.nodes,
                   .gpus = scenario.cluster.gpus,
                   .topology = scenario.cluster.network.topology,
                   .sequence_length = scenario.plans.front().plan.sequence_length,
                   .total_tokens = scenario.total_tokens,
                   .price_per_gpu_hour = scenario.price_per_gpu_hour,
                   .text = scenario.text},
      .model = model_info(scenario.model),
      .topology = machine.drawing.picture,
      .parameters = parameters_of(scenario),
  };
}

bool beyond_positions(const scenario::Scenario& scenario, std::int64_t tokens) {
  return scenario.model.max_positions > 0 && tokens > scenario.model.max_positions;
}

}  // namespace ulysim::study
