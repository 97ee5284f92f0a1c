// The message when nothing is left to happen and ops are unfinished.
#include "sim/base/check.h"
#include "sim/engine/simulation.h"

namespace ulysim::engine {

std::string Simulation::obstacle(std::uint32_t lane_index, std::uint32_t op) const {
  const std::uint32_t rank = rank_of(lane_index);
  const Program& program = program_of(rank);
  if (lanes_[lane_index].running) {
    const PatternClasses& pattern = folding_.patterns[*program.kind(op).pattern];
    for (const std::uint32_t t : pattern.of_class[rank]) {
      const std::uint32_t arrived = arrived_[arrivals_begin_[program.schedule->role][op] + t];
      const std::size_t participants = pattern.transactions[t].participants.size();
      if (arrived < participants) {
        return fmt::format("its peers ({} of {} classes of ranks have arrived)", arrived, participants);
      }
    }
    return "its transfers";
  }
  const Host& host = ranks_[rank].host;
  if (op >= host.next) {
    return host.state == Host::State::draining ? "the host, which waits until every kernel issued before is done"
                                               : "the host, which waits for " + program.describe(host.next - 1);
  }
  for (const std::uint32_t before : program.schedule->dependencies_of(op)) {
    const std::uint32_t other = lane_of(rank, before);
    const Lane& lane = lanes_[other];
    if (lane.position < stream_of(other).size() && stream_of(other)[lane.position] <= before) {
      return program.describe(before);
    }
  }
  const auto pool = static_cast<std::size_t>(program.kind(op).op->acquire);
  return fmt::format("a credit ({} of {} taken)", ranks_[rank].pools[pool].held, program.graph->credit_windows[pool]);
}

void Simulation::report_blocked() const {
  constexpr int kMost = 10;
  std::string text = fmt::format("nothing can happen after {} ps and {} ops are not done:", now_.value(), left_);
  int named = 0;
  std::vector<bool> shown(programs_.of_role.size(), false);
  for (std::uint32_t lane = 0; lane < lanes_.size() && named < kMost; ++lane) {
    const std::uint32_t rank = rank_of(lane);
    const Program& program = program_of(rank);
    // One class of each role tells enough.
    if (lane % workload::kStreams == 0 && shown[folding_.ranks[rank].role]) {
      lane += workload::kStreams - 1;
      continue;
    }
    shown[folding_.ranks[rank].role] = true;
    const auto& stream = stream_of(lane);
    if (lanes_[lane].position < stream.size()) {
      const std::uint32_t op = stream[lanes_[lane].position];
      text += fmt::format("\n  {} on {} waits for {}", program.describe(op),
                          workload::name(static_cast<workload::Stream>(lane % workload::kStreams)), obstacle(lane, op));
      ++named;
    }
  }
  throw InternalError(text);
}

}  // namespace ulysim::engine
