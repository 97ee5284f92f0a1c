// The host issues ops in program order. Between synchronisations its instants follow from arithmetic alone, so they are
// computed in one go and cost no events.
#include <algorithm>

#include "sim/base/check.h"
#include "sim/engine/simulation.h"

namespace ulysim::engine {

void Simulation::issue(std::uint32_t rank) {
  const Program& program = program_of(rank);
  Host& host = ranks_[rank].host;
  host.state = Host::State::issuing;
  while (host.state == Host::State::issuing) {
    if (host.next == program.size()) {
      host.state = Host::State::finished;
      break;
    }
    const OpKind& kind = program.kind(host.next);
    if (kind.op->drains && host.kernels_done < host.kernels_issued) {
      host.state = Host::State::draining;
      break;
    }
    std::int64_t took = 0;
    ULYSIM_CHECK(!__builtin_mul_overflow(machine_.host.issue_time.value(), kind.launches(rank), &took),
                 "{} launches of {} ps each", kind.launches(rank), machine_.host.issue_time.value());
    host.clock = host.clock + Duration(took);
    issued_[at(rank, host.next)] = host.clock;
    ++host.next;
    host.kernels_issued += kind.op->stream == workload::Stream::compute ? 1U : 0U;
    if (kind.op->host_waits) {
      host.state = Host::State::waiting;
    }
  }
  for (std::uint32_t stream = 0; stream < workload::kStreams; ++stream) {
    try_start(static_cast<std::uint32_t>(rank * workload::kStreams + stream));
  }
}

void Simulation::wake_host(std::uint32_t rank, std::uint32_t ended) {
  Host& host = ranks_[rank].host;
  const bool drained = host.state == Host::State::draining && host.kernels_done == host.kernels_issued;
  const bool awaited = host.state == Host::State::waiting && ended + 1 == host.next;
  if (drained || awaited) {
    host.clock = std::max(host.clock, now_);
    issue(rank);
  }
}

}  // namespace ulysim::engine
