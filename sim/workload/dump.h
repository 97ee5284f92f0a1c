#pragma once

#include <string>

#include "sim/workload/op_graph.h"

namespace ulysim::workload {

/// Stable text of a graph: mesh, templates with their tensors and bodies, programs run-length coded.
[[nodiscard]] std::string dump(const OpGraph& graph);

/// "[batch=1, tokens=1Mi/zigzag(ring·ulysses), hidden=4096] bf16 partial{data}".
[[nodiscard]] std::string describe(const Tensor& tensor);

}  // namespace ulysim::workload
