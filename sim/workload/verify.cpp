#include "sim/workload/verify.h"

#include <algorithm>

#include "sim/workload/shape_checker.h"
#include "sim/workload/verify_internal.h"

namespace ulysim::workload {

std::vector<std::string> verify_shapes(const OpGraph& graph) {
  std::vector<std::string> findings;
  for (const BlockTemplate& block : graph.templates) {
    ShapeChecker(graph, block, findings).run();
  }
  return findings;
}

std::vector<std::string> verify(const OpGraph& graph) {
  std::vector<std::string> findings = verify_shapes(graph);
  for (const BlockTemplate& block : graph.templates) {
    // The last, the first, and one between.
    const std::int64_t count = graph.micro_batches;
    for (std::int64_t index = count - 1; index >= std::max<std::int64_t>(0, count - 3) && findings.empty(); --index) {
      verify_lifetimes(block, count > 3 && index == count - 3 ? 0 : index, count, findings);
    }
  }
  if (findings.empty()) {
    verify_execution(graph, findings);
  }
  return findings;
}

}  // namespace ulysim::workload
