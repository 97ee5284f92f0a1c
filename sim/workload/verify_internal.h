#pragma once

#include <string>
#include <vector>

#include "sim/workload/op_graph.h"

namespace ulysim::workload {

/// Plays all roles without a clock: stream order, host synchronisations, credits, matched messages. Adds a finding
/// that names the blocked ops when the play ends before the programs do, and one for each two roles that enter
/// other collectives.
void verify_execution(const OpGraph& graph, std::vector<std::string>& findings);

}  // namespace ulysim::workload
