#include "sim/study/machine.h"

namespace ulysim::study {

Machine build_machine(const scenario::Scenario& scenario) {
  return {.topology = topology::build(scenario.cluster),
          .cost = cost::make_cost_model(scenario.cluster.gpu, scenario.kernels)};
}

}  // namespace ulysim::study
