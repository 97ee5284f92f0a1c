#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "sim/results/run_result.h"
#include "sim/results/timeline.h"
#include "sim/workload/unroll.h"

namespace ulysim::study {

/// Where the critical time of one rank went. Every picosecond of the step is counted once.
struct Breakdown {
  std::vector<results::NamedDuration> parts{};  ///< in the order of design: attention … other; sums to the step
  std::array<Duration, workload::kCollectiveKinds> exposed_by_kind{};
  std::array<Duration, workload::kPurposes> exposed_by_purpose{};  ///< collectives and messages only
};

/// What communication an op is: a message between stages is a send_recv. Nothing for other ops.
[[nodiscard]] std::optional<workload::CollectiveKind> kind_of(const workload::Op& op);

/// Walks the compute stream of `rank`: its kernels count as what they are; a gap before a kernel counts as what the
/// kernel waited for (Span::cause, followed backwards). A message that the other end has not joined yet is a bubble.
[[nodiscard]] Breakdown break_down(const workload::Schedule& schedule, const results::RankTimeline& rank, Instant end);

/// The class of ranks that ends last; of those that end together the one whose compute stream is busiest (the first of
/// equals): the others wait for it.
[[nodiscard]] const results::RankTimeline& last_rank(std::span<const workload::Schedule> schedules,
                                                     const results::Timeline& timeline);

}  // namespace ulysim::study
