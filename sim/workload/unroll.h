#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/workload/op_graph.h"

namespace ulysim::workload {

/// One execution of an op: which op of which body, for which instance and trip.
struct FlatOp {
  const Op* op{};
  std::uint32_t instance{};  ///< index into the role's program
  std::uint32_t trip{};
  bool first_trip{true};
  bool last_trip{true};
};

/// The program of one role laid out in order. Every rank of the role runs exactly these ops; index = program order.
struct Schedule {
  std::vector<FlatOp> ops{};
  /// CSR: the ops that must be done before op i starts: writers of what it reads, and its order edges; those that
  /// stand before it in its own stream are left out, since the stream's order says so already.
  std::vector<std::uint32_t> first_dependency{};
  std::vector<std::uint32_t> dependencies{};
  /// Per stream, its ops in order.
  std::array<std::vector<std::uint32_t>, kStreams> streams{};

  [[nodiscard]] std::span<const std::uint32_t> dependencies_of(std::size_t op) const {
    return std::span(dependencies).subspan(first_dependency[op], first_dependency[op + 1] - first_dependency[op]);
  }
};

/// Requires roles[role] and a graph whose ops read only what was written before (see verify). `graph` must outlive
/// the schedule.
[[nodiscard]] Schedule unroll(const OpGraph& graph, std::size_t role);

/// What op `op` of `schedule` allocates or frees at this trip: tensors of a loop every trip, others with the first
/// (allocs) or last (frees) trip.
[[nodiscard]] bool allocates(const FlatOp& op, const Tensor& tensor);
[[nodiscard]] bool frees(const FlatOp& op, const Tensor& tensor);

}  // namespace ulysim::workload
