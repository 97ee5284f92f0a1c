#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw_models/topology/topology.h"
#include "sim/base/ids.h"
#include "sim/collectives/algorithm.h"
#include "sim/workload/op_graph.h"

namespace ulysim::engine {

/// One way in which the ops of a program use the machine. `shift` is a send_recv: every pair of neighbours is a
/// transaction of its own, so a rank does not wait for ranks two hops away. `message` goes from each rank of one
/// pipeline stage to the rank of another that differs in nothing else.
struct Pattern {
  enum class Kind : std::uint8_t { collective, shift, message, to_host, from_host, host_memory, to_nvme, from_nvme };
  Kind kind{Kind::collective};
  collectives::Kind collective{collectives::Kind::all_to_all};  ///< send_recv of shift and message
  workload::AxisSet axes{};                                     ///< of kinds collective and shift, none of size 1
  std::int64_t from_stage{}, to_stage{};                        ///< of kind message

  friend bool operator==(const Pattern& a, const Pattern& b) {
    return a.kind == b.kind && a.collective == b.collective && a.axes == b.axes && a.from_stage == b.from_stage &&
           a.to_stage == b.to_stage;
  }
};

/// The pattern that `op` of `role` uses; nothing for compute ops and for collectives over groups of one.
[[nodiscard]] std::optional<Pattern> pattern_of(const workload::OpGraph& graph, const workload::Role& role,
                                                const workload::BlockTemplate& block, const workload::Op& op);

/// Index of the role that `rank` plays: that of its pipeline coordinate.
[[nodiscard]] std::size_t role_of(const workload::OpGraph& graph, RankId rank);

/// Where a transfer runs: inside a node (NVLink, PCIe) or across nodes.
enum class Fabric : std::uint8_t { node, network };

/// What starts together and ends together: one group of a collective, one pair of a shift, one rank's copy.
struct Unit {
  std::uint32_t pattern{};
  std::size_t members_begin{}, members_end{};      ///< in TrafficGraph::members
  std::size_t transfers_begin{}, transfers_end{};  ///< in TrafficGraph::transfers
  std::uint32_t divisor{1};                        ///< chunk = ceil(payload / divisor)
  std::uint32_t steps{};                           ///< repeats counted
  Fabric fabric{Fabric::node};                     ///< network when any of its transfers crosses nodes
};

struct Member {
  RankId rank{};
  std::uint32_t part{};  ///< of a shift or message: 0 sends, 1 receives; else 0
};

struct UnitTransfer {
  std::uint32_t unit{};
  std::uint32_t step{};
  std::uint32_t repeat{1};
  std::uint32_t chunks{1};
  Fabric fabric{Fabric::node};
  std::size_t links_begin{}, links_end{};  ///< in TrafficGraph::transfer_links
};

/// Everything that the ranks of a program may ask of the links, pattern by pattern, before folding.
struct TrafficGraph {
  std::vector<Pattern> patterns{};
  std::vector<Unit> units{};
  std::vector<Member> members{};
  std::vector<UnitTransfer> transfers{};
  std::vector<LinkId> transfer_links{};
};

/// Lowers each pattern of the roles' programs once, on every group of ranks whose role uses it. Patterns in order of
/// first appearance. Requires topology.ranks() = graph.mesh.world().
[[nodiscard]] TrafficGraph traffic_of(const workload::OpGraph& graph, const topology::Topology& topology);

}  // namespace ulysim::engine
