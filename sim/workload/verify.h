#pragma once

#include <string>
#include <vector>

#include "sim/workload/op_graph.h"

namespace ulysim::workload {

/// The type checker of graphs. Each finding is a sentence that names template, body and op. Empty: the graph is
/// sound: what an op reads was written, producer sharding = consumer sharding, partial sums are reduced before
/// anything but a collective reads them, a ring transfers the very tensor that its attention reads, every
/// allocation is freed once (after place_lifetimes), loops stand together, all roles of a group enter the same
/// collectives in the same order, and stream order, credits and tagged messages admit an execution (else the
/// blocked ops are named: a deadlock).
[[nodiscard]] std::vector<std::string> verify(const OpGraph& graph);

/// The part of verify() that holds after every single pass: shapes, shardings, reads and writes.
[[nodiscard]] std::vector<std::string> verify_shapes(const OpGraph& graph);

/// Fills allocs and frees of every op: a tensor is allocated by its first writer and freed by its last reader.
/// Requires verify_shapes() empty. Idempotent.
void place_lifetimes(OpGraph& graph);

}  // namespace ulysim::workload
