#pragma once

#include <cstdint>

#include "sim/workload/op_graph.h"

namespace ulysim::strategies {

/// Cuts the forward gathers and scatters over the tensor axis of a layer, and the products that they feed or drain,
/// into `degree` steps over the tokens, so that each step of the one runs beside a step of the other (Megatron-LM
/// tp_comm_overlap: TransformerEngine's userbuffers, ring exchange). Requires a layer that the tensor pass has cut.
void overlap_forward(workload::BlockTemplate& layer, std::int64_t degree);

}  // namespace ulysim::strategies
