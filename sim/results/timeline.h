#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/quantity.h"

namespace ulysim::results {

/// What the start of an op waited for last.
enum class Cause : std::uint8_t {
  nothing,     ///< it could start at once
  stream,      ///< the op before it in its stream (`cause_op`)
  dependency,  ///< an op whose result it reads (`cause_op`)
  issue,       ///< the host had not issued it yet
  credit,      ///< a window (`cause_op` returned the credit)
  peers,       ///< another rank had not arrived
};

/// One executed op. Index in `RankTimeline::spans` = index in the schedule.
struct Span {
  Instant issued{};  ///< by the host
  Instant begin{};   ///< a collective begins when this rank has arrived, and waits for its peers inside
  Instant end{};
  Cause cause{Cause::nothing};
  std::uint32_t cause_op{};
  Instant joined{};  ///< of a collective or message: when all who take part were there
};

/// What one simulated rank did, for all `members` ranks of its class.
struct RankTimeline {
  RankId representative{};
  std::size_t role{};  ///< of the graph: whose schedule `spans` follow
  std::vector<RankId> members{};
  std::vector<Span> spans{};
};

struct LinkUse {
  std::string name{};
  std::string kind{};
  double capacity{};      ///< bytes per second
  double carried{};       ///< wire bytes over the step
  std::int64_t links{1};  ///< links of this class
};

struct Timeline {
  Instant end{};
  std::vector<RankTimeline> ranks{};
  std::vector<LinkUse> links{};
};

}  // namespace ulysim::results
