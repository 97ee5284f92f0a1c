#include "sim/study/machine.h"

namespace ulysim::study {

Machine build_machine(const scenario::Scenario& scenario) {
  Machine machine{.topology = topology::build(scenario.cluster),
                  .cost = cost::make_cost_model(scenario.cluster.gpu, scenario.kernels)};
  machine.drawing = draw(machine.topology);
  return machine;
}

}  // namespace ulysim::study
