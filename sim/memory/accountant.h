#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/results/timeline.h"
#include "sim/workload/op_graph.h"
#include "sim/workload/unroll.h"

namespace ulysim::memory {

struct Sample {
  Instant at{};
  std::int64_t bytes{};
};

using KindBytes = std::array<std::int64_t, workload::kMemoryKinds>;  ///< by MemoryKind

/// All copies of one tensor of one template.
struct Holding {
  std::string name{};  ///< "layer.q"
  workload::MemoryKind kind{workload::MemoryKind::activations};
  std::int64_t count{};  ///< alive at once: layers, micro-batches
  std::int64_t bytes{};  ///< of all of them
  bool pinned{};         ///< each is a block of pinned memory
};

/// One rank's bytes in one memory over the step.
struct Usage {
  std::vector<Sample> curve{};  ///< by instant, each once, where the bytes may change; holds until the next sample
  std::int64_t peak{};
  Instant peak_at{};                ///< the first instant of the peak
  KindBytes at_peak{};              ///< sums to peak
  std::vector<Holding> holdings{};  ///< at the peak, largest first; sums to peak
};

struct MemoryResult {
  Usage gpu{};
  Usage host{};  ///< this rank's tensors in its node's memory
  Usage nvme{};  ///< and on its node's drives
};

/// The books of one rank. Persistent tensors are there all the time, once per block of their template that the role
/// runs; all others from the begin of the op that allocates them to the end of the op that frees them. At equal
/// instants frees come first, and each in program order, so a tensor that dies as another is born never counts twice.
/// Requires rank.spans of `schedule` = unroll(graph, role), with allocs and frees placed. InternalError when what was
/// allocated is not freed, or the other way round.
[[nodiscard]] MemoryResult account(const workload::OpGraph& graph, const workload::Schedule& schedule,
                                   const results::RankTimeline& rank);

/// What the same books hold in the GPU's memory at each of `instants`, which ascend.
[[nodiscard]] std::vector<KindBytes> gpu_kinds_at(const workload::OpGraph& graph, const workload::Schedule& schedule,
                                                  const results::RankTimeline& rank, std::span<const Instant> instants);

}  // namespace ulysim::memory
