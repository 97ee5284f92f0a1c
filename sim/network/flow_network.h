#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/network/max_min.h"

namespace ulysim::network {

/// Flows in progress over links shared max-min fairly. The engine owns one and moves its clock.
/// A flow (class) is `bytes` per member; `wire_bytes` may exceed the payload by protocol overhead.
///
/// Between changes of the set of flows every rate r is constant, so a flow with b bytes left at instant t completes
/// at t + ceil(b / r). Only instants are integers; bytes left are double and are brought forward only when the flow's
/// rate really changes: stopping the clock anywhere in between changes nothing, and a flow that a newcomer does not
/// slow down keeps its completion to the picosecond. Allocates nothing once it has seen its busiest moment.
class FlowNetwork {
 public:
  using Handle = std::uint32_t;

  /// Capacities in bytes per second, by link class.
  explicit FlowNetwork(std::vector<double> capacities);

  /// Starts a flow at the current instant. `crossings` must outlive the flow (patterns own them). `wire_bytes` > 0.
  /// Rates are re-solved once per instant, at the next call of `next_completion` or `advance`.
  Handle start(std::span<const Crossing> crossings, double wire_bytes);

  /// The instant at which the earliest flow completes (rounded up to whole picoseconds), or nothing when idle.
  /// RangeError when a flow would take over 100 days at its rate.
  [[nodiscard]] std::optional<Instant> next_completion();

  /// Moves the clock to `to` (≥ now and ≤ next_completion) and appends the flows that complete exactly then, in
  /// order of their start. Their handles may be reused by later flows.
  void advance(Instant to, std::vector<Handle>& completed);

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::size_t active() const { return active_.size(); }
  /// Rate of an active flow's member now, bytes per second.
  [[nodiscard]] double rate(Handle handle);
  /// By link class, what each member link carries now, bytes per second.
  void loads(std::vector<double>& by_link);
  /// Wire bytes that each member link of a class has carried so far. Exact sums for completed flows. The span is
  /// good until the next call.
  [[nodiscard]] std::span<const double> carried();

 private:
  struct Flow {
    std::span<const Crossing> crossings{};
    double total{};     ///< wire bytes of one member
    double left{};      ///< of those, not yet moved at `since`
    double credited{};  ///< of those, already in carried_
    double rate{};      ///< 0 until the first solve
    Instant since{};    ///< when the rate began
    Instant finish{};   ///< at the present rate
    bool active{};
  };
  void settle();  ///< re-solves rates if a flow started or ended since
  [[nodiscard]] double left_now(const Flow& flow) const;
  void credit(Flow& flow, double moved);

  MaxMin solver_;
  std::vector<Flow> flows_;
  std::vector<Handle> active_;  ///< in order of start
  std::vector<Handle> free_;
  std::vector<std::span<const Crossing>> classes_;  ///< scratch: the solver's view of active_
  std::vector<double> rates_;                       ///< scratch
  std::vector<double> carried_;
  std::optional<Instant> next_{};  ///< earliest finish; valid while not dirty
  Instant now_{};
  bool dirty_{};
};

}  // namespace ulysim::network
