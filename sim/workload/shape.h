#pragma once

#include <cstdint>

#include "hw_models/kernel/kernel.h"
#include "sim/base/quantity.h"
#include "sim/workload/op_graph.h"

namespace ulysim::workload {

/// Where in the mesh an op is looked at; only the ring coordinate changes work (contiguous causal ring).
struct At {
  std::int64_t ring{};
};

/// The kernel that a compute op (GEMM, attention, element-wise) asks of one GPU, for one trip of its loop.
/// InternalError for other ops.
[[nodiscard]] kernel::Kernel kernel_of(const OpGraph& graph, const BlockTemplate& block, const Body& body, const Op& op,
                                       At at);

/// Counts what attention under block patterns, documents and chunks finds at each ring coordinate, once for all that
/// ask kernel_of() later. Only for a graph whose passes are done: tables do not follow a change of shards.
void tabulate_attention(OpGraph& graph);

/// Payload of a collective, message or copy, bytes of one rank and trip: the tensors sent (all-to-all, reduce-scatter,
/// all-reduce, send/recv, copies) or received (all-gather, the receiving end of a message).
[[nodiscard]] Bytes payload_of(const OpGraph& graph, const BlockTemplate& block, const Body& body, const Op& op);

/// Host-memory bytes of a HostWork op, one rank.
[[nodiscard]] Bytes host_traffic_of(const OpGraph& graph, const BlockTemplate& block, const Body& body, const Op& op);

/// Bytes of a tensor at one rank, as it is held during one trip if it belongs to a loop of `body`.
[[nodiscard]] Bytes held_bytes(const OpGraph& graph, const Body& body, const Tensor& tensor);

/// Whether ranks with other ring coordinates do other work (their folding classes then differ).
[[nodiscard]] bool work_depends_on_ring(const OpGraph& graph);

/// Executed forward pairs of the ring coordinate that has most, over the average of all coordinates; 1 when even.
[[nodiscard]] double attention_imbalance(const OpGraph& graph);

}  // namespace ulysim::workload
