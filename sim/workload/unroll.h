#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/workload/op_graph.h"

namespace ulysim::workload {

/// One execution of an op: which op of which body, for which instance. The trips of a loop are run op by op (all
/// trips of the first op, then of the second …): such loops hold compute ops only, so time, launches and the memory of
/// one trip come out as if they were run trip by trip. Where other streams work between the trips, parts are ops.
struct FlatOp {
  const Op* op{};
  std::uint32_t instance{};  ///< index into the role's program
  std::int64_t trips{1};     ///< its time and launches count so many times
};

/// The program of one role laid out in order. Every rank of the role runs exactly these ops; index = program order.
struct Schedule {
  std::size_t role{};
  std::vector<FlatOp> ops{};
  /// CSR: the ops that must be done before op i starts: writers of what it reads, its order edges, and for collectives
  /// launched from the compute stream the kernel before them; those that
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

}  // namespace ulysim::workload
