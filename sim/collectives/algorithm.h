#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/topology/topology.h"
#include "sim/base/ids.h"
#include "sim/base/quantity.h"
#include "sim/workload/collective_kind.h"

namespace ulysim::collectives {

using Kind = workload::CollectiveKind;
using workload::name;

/// One directed transfer of a step, between positions of the group. It moves `chunks` chunks.
struct Transfer {
  std::uint32_t from{};
  std::uint32_t to{};
  std::uint32_t chunks{1};
};

/// Transfers that run at once, `repeat` times in a row with the same pattern; the next step starts when all end.
struct Step {
  std::vector<Transfer> transfers{};
  std::uint32_t repeat{1};
};

/// What a collective does to the network, whatever the payload: chunk = ceil(payload / divisor) bytes,
/// padded to equal chunks as NCCL does.
struct FlowProgram {
  std::vector<Step> steps{};
  std::uint32_t divisor{1};
};

/// Who takes part: ranks in group order. Positions of the transfers index this.
struct Group {
  std::span<const RankId> ranks{};
  const topology::Topology* topology{};
};

/// One algorithm of one or more collectives. Contract: `lower` moves, summed over steps, exactly the volume that
/// the bus-bandwidth factors say: from every position chunks·chunk = payload · (2(n−1)/n all-reduce, (n−1)/n
/// all-to-all, all-gather and reduce-scatter, 1 send_recv), up to padding. No step pairs a position with itself.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string summary() const = 0;
  [[nodiscard]] virtual bool supports(Kind kind, const Group& group) const = 0;
  /// Requires supports() (InternalError otherwise); groups of one lower to no steps. Payload: the tensor a rank sends
  /// (all-to-all, reduce-scatter, all-reduce, send_recv) or ends with (all-gather).
  [[nodiscard]] virtual FlowProgram lower(Kind kind, const Group& group) const = 0;
};

/// The family, in order of preference.
[[nodiscard]] std::span<const Algorithm* const> algorithms();
/// The first that supports it; InternalError when none does.
[[nodiscard]] const Algorithm& choose(Kind kind, const Group& group);
[[nodiscard]] const Algorithm* find(std::string_view name);  ///< nullptr when there is none of that name

/// Bytes that one rank sends, logical: size · factor(kind, n) rounded down, as nccl-tests' PERFORMANCE.md has it.
/// A group of one sends nothing. Requires payload ≥ 0 and ranks ≥ 1.
[[nodiscard]] Bytes sent_bytes(Kind kind, Bytes payload, std::int64_t ranks);

}  // namespace ulysim::collectives
