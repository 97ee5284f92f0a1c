#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/op_graph.h"

namespace ulysim::workload {

/// Every tensor that a body allocates is freed once, and after its last use, in micro-batch `index` of `count`: what
/// only the last one frees would pile up in the others.
void verify_lifetimes(const BlockTemplate& block, std::int64_t index, std::int64_t count,
                      std::vector<std::string>& findings);

/// Plays all roles without a clock: stream order, host synchronisations, credits, matched messages. Adds a finding
/// that names the blocked ops when the play ends before the programs do, and one for each two roles that enter
/// other collectives.
void verify_execution(const OpGraph& graph, std::vector<std::string>& findings);

}  // namespace ulysim::workload
