#pragma once

#include <cstdint>
#include <span>

#include "hw_models/cost/cost_model.h"
#include "hw_models/spec/cluster.h"
#include "hw_models/topology/topology.h"
#include "sim/base/quantity.h"
#include "sim/engine/fold.h"
#include "sim/results/timeline.h"
#include "sim/workload/op_graph.h"
#include "sim/workload/unroll.h"

namespace ulysim::engine {

/// What a training stack costs beside its kernels' own time.
struct HostCosts {
  Duration issue_time{};             ///< of the host, per kernel launch, collective or copy
  std::int64_t communication_sms{};  ///< taken from compute while a collective runs; below the GPU's SMs
};

/// What a program runs on. All pointers are required and outlive the call. The topology is that of the cluster.
struct Machine {
  const spec::Cluster* cluster{};
  const topology::Topology* topology{};
  const cost::CostModel* cost{};
  HostCosts host{};
};

/// Whether Timeline::loads is filled; that costs a look at every link each time that rates change.
enum class LinkLoads : std::uint8_t { ignored, recorded };

struct Options {
  FoldMode fold{FoldMode::folded};
  LinkLoads loads{LinkLoads::ignored};
};

/// Plays one training step, event by event. schedules[r] = unroll(graph, r) for every role; the mesh has as many ranks
/// as the topology, and each pipeline coordinate its role. One RankTimeline per class of ranks, that of rank 0 first.
/// InternalError when ops are left that can never start (it names them), RangeError when a time leaves its range.
[[nodiscard]] results::Timeline simulate(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules,
                                         const Machine& machine, const Options& options);

}  // namespace ulysim::engine
