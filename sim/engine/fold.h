#pragma once

#include <cstdint>
#include <vector>

#include "hw_models/topology/topology.h"
#include "sim/base/ids.h"
#include "sim/engine/traffic_graph.h"
#include "sim/network/max_min.h"
#include "sim/workload/op_graph.h"

namespace ulysim::engine {

/// unfolded: every rank, link and transfer is a class of its own, by the same code.
enum class FoldMode : std::uint8_t { folded, unfolded };

/// Transfers that behave alike, as one flow class of the network.
struct FlowClass {
  std::vector<network::Crossing> crossings{};  ///< over link classes, ascending
  std::uint32_t chunks{1};
  Fabric fabric{Fabric::node};
};

/// Flows that start together; the next step starts when all have ended. Each carries `repeat` equal steps.
struct TransactionStep {
  std::vector<FlowClass> flows{};
  std::uint32_t repeat{1};
};

/// A class of units (groups of a collective, pairs of a shift, copies): simulated once.
struct Transaction {
  std::vector<std::uint32_t> participants{};  ///< rank classes, ascending: starts when all have arrived
  std::vector<TransactionStep> steps{};
  std::uint32_t divisor{1};
  std::uint32_t total_steps{};  ///< repeats counted
  Fabric fabric{Fabric::node};
};

struct PatternClasses {
  Pattern pattern{};
  std::vector<Transaction> transactions{};
  /// By rank class: the transactions it takes part in (a shift: its sending and its receiving one).
  std::vector<std::vector<std::uint32_t>> of_class{};
};

struct RankClass {
  RankId representative{};  ///< the first member
  std::size_t role{};       ///< that all members play
  std::vector<RankId> members{};
};

struct LinkClass {
  LinkId representative{};  ///< the first member
  std::vector<LinkId> members{};
};

/// Which ranks, links and transfers are simulated, and for how many others each of them stands.
struct Folding {
  std::vector<std::uint32_t> class_of_rank{};
  std::vector<RankClass> ranks{};
  std::vector<LinkClass> links{};
  std::vector<double> capacities{};  ///< by link class, bytes per second of one link
  std::vector<PatternClasses> patterns{};
};

/// Folds the roles of `graph` over `topology`. Requires topology.ranks() = graph.mesh.world().
[[nodiscard]] Folding fold(const workload::OpGraph& graph, const topology::Topology& topology, FoldMode mode);

}  // namespace ulysim::engine
