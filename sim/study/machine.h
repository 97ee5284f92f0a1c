#pragma once

#include <memory>

#include "hw_models/cost/cost_model.h"
#include "hw_models/topology/topology.h"
#include "sim/scenario/scenario.h"
#include "sim/study/topology_picture.h"

namespace ulysim::study {

/// What every plan of a scenario runs on, built once.
struct Machine {
  topology::Topology topology{};
  std::unique_ptr<cost::CostModel> cost{};
  Drawing drawing{};
};

[[nodiscard]] Machine build_machine(const scenario::Scenario& scenario);

}  // namespace ulysim::study
