// How an op of a stream starts and ends.
#include <algorithm>

#include "sim/base/check.h"
#include "sim/engine/simulation.h"

namespace ulysim::engine {

void Simulation::try_start(std::uint32_t lane_index) {
  Lane& lane = lanes_[lane_index];
  const auto& stream = stream_of(lane_index);
  if (lane.running || lane.position == stream.size()) {
    return;
  }
  const std::uint32_t op = stream[lane.position];
  const std::uint32_t rank = rank_of(lane_index);
  if (op >= ranks_[rank].host.next || missing_[at(rank, op)] > 0) {
    return;  // the host, or the last dependency, comes back
  }
  const Instant issued = issued_[at(rank, op)];
  if (issued > now_) {
    if (lane.retry_at != issued) {
      lane.retry_at = issued;
      events_.push(issued, Event::Kind::issued, lane_index, 0);
    }
    return;
  }
  if (!take_credit(lane_index, op)) {
    return;
  }
  note_cause(lane_index, op);
  start(lane_index, op);
}

bool Simulation::take_credit(std::uint32_t lane_index, std::uint32_t op) {
  const Program& program = program_of(rank_of(lane_index));
  const workload::CreditPool kind = program.kind(op).op->acquire;
  if (kind == workload::CreditPool::none) {
    return true;
  }
  const auto index = static_cast<std::size_t>(kind);
  const auto& acquirers = program.acquirers[index];
  Pool& pool = ranks_[rank_of(lane_index)].pools[index];
  if (acquirers[pool.next_acquirer] != op || pool.held >= program.graph->credit_windows[index]) {
    lanes_[lane_index].credit_blocked = true;
    return false;
  }
  ++pool.held;
  ++pool.next_acquirer;
  return true;
}

// What was last: the latest of the instants at which each condition came true; of equals the first named here.
void Simulation::note_cause(std::uint32_t lane_index, std::uint32_t op) {
  Lane& lane = lanes_[lane_index];
  const std::uint32_t rank = rank_of(lane_index);
  const Program& program = program_of(rank);
  auto& spans = timeline_.ranks[rank].spans;
  results::Span& span = spans[op];
  span.issued = issued_[at(rank, op)];
  span.begin = now_;
  Instant latest{};
  for (const std::uint32_t before : program.schedule->dependencies_of(op)) {
    if (spans[before].end > latest) {
      latest = spans[before].end;
      span.cause = results::Cause::dependency;
      span.cause_op = before;
    }
  }
  if (lane.free_at > latest) {
    latest = lane.free_at;
    span.cause = results::Cause::stream;
    span.cause_op = lane.last_op;
  }
  if (lane.credit_blocked) {
    lane.credit_blocked = false;
    const auto pool = static_cast<std::size_t>(program.kind(op).op->acquire);
    if (now_ > latest) {
      latest = now_;
      span.cause = results::Cause::credit;
      span.cause_op = ranks_[rank].pools[pool].last_op;
    }
  }
  if (issued_[at(rank, op)] > latest) {
    span.cause = results::Cause::issue;
    span.cause_op = 0;
  }
}

void Simulation::start(std::uint32_t lane_index, std::uint32_t op) {
  Lane& lane = lanes_[lane_index];
  const std::uint32_t rank = rank_of(lane_index);
  const Program& program = program_of(rank);
  const OpKind& kind = program.kind(op);
  lane.running = true;
  if (kind.op->acquire != workload::CreditPool::none) {
    const auto index = static_cast<std::size_t>(kind.op->acquire);
    Pool& pool = ranks_[rank].pools[index];
    pool.last_op = op;
    if (pool.next_acquirer < program.acquirers[index].size()) {
      const std::uint32_t other = lane_of(rank, program.acquirers[index][pool.next_acquirer]);
      if (other != lane_index) {
        try_start(other);
      }
    }
  }
  if (kind.work != OpKind::Work::compute) {
    arrive(lane_index, op);
    return;
  }
  const Duration time = kind.kernel(rank).time;
  if (time.value() == 0) {
    ended_.push_back(lane_index);
    return;
  }
  lane.kernel = true;
  lane.rated = false;
  lane.work = static_cast<Work>(time.value()) * machine_.cluster->gpu.sms.value;
  lane.since = now_;
  mark_unrated(rank);
}

void Simulation::mark_unrated(std::uint32_t rank) {
  if (!ranks_[rank].unrated) {
    ranks_[rank].unrated = true;
    unrated_.push_back(rank);
  }
}

// NCCL's kernels occupy SMs: compute beside them runs on the others.
void Simulation::rate_kernel(std::uint32_t lane_index) {
  Lane& lane = lanes_[lane_index];
  const bool slowed = ranks_[rank_of(lane_index)].collectives > 0 && machine_.host.communication_sms > 0;
  if (!lane.kernel || (lane.rated && lane.slowed == slowed)) {
    return;
  }
  const std::int64_t sms = machine_.cluster->gpu.sms.value;
  const auto rate = [&](bool slow) { return slow ? sms - machine_.host.communication_sms : sms; };
  if (lane.rated) {
    lane.work -= static_cast<Work>((now_ - lane.since).value()) * rate(lane.slowed);
    lane.work = std::max(lane.work, Work{0});  // the end was rounded up to a whole picosecond
  }
  lane.since = now_;
  lane.rated = true;
  lane.slowed = slowed;
  const Work rest = (lane.work + rate(slowed) - 1) / rate(slowed);
  ULYSIM_CHECK(rest <= static_cast<Work>(kLongestSeconds * kPicosecondsPerSecond), "a kernel takes over 100 days");
  events_.push(now_ + Duration(static_cast<std::int64_t>(rest)), Event::Kind::kernel_ends, lane_index, ++lane.version);
}

void Simulation::finish_all() {
  // finish() appends what ends at this very instant.
  // NOLINTNEXTLINE(modernize-loop-convert): the list grows while it is walked
  for (std::size_t i = 0; i < ended_.size(); ++i) {
    finish(ended_[i]);
  }
  ended_.clear();
}

void Simulation::finish(std::uint32_t lane_index) {
  Lane& lane = lanes_[lane_index];
  const std::uint32_t rank = rank_of(lane_index);
  const Program& program = program_of(rank);
  const std::uint32_t op = stream_of(lane_index)[lane.position];
  ULYSIM_CHECK(lane.running, "{} ends twice", program.describe(op));
  timeline_.ranks[rank].spans[op].end = now_;
  ++lane.version;  // voids an end that is still under way
  lane.running = false;
  lane.kernel = false;
  lane.free_at = now_;
  lane.last_op = op;
  ++lane.position;
  --left_;
  ranks_[rank].host.kernels_done += program.kind(op).op->stream == workload::Stream::compute ? 1U : 0U;
  for (const std::uint32_t after : program.successors_of(op)) {
    if (--missing_[at(rank, after)] == 0) {
      try_start(lane_of(rank, after));
    }
  }
  const workload::CreditSet returned = program.kind(op).op->release;
  for (std::size_t index = 0; !returned.empty() && index < workload::kCreditPools; ++index) {
    if (!returned.contains(static_cast<workload::CreditPool>(index))) {
      continue;
    }
    Pool& pool = ranks_[rank].pools[index];
    ULYSIM_CHECK(pool.held > 0, "{} returns a credit that nobody took", program.describe(op));
    --pool.held;
    pool.last_op = op;
    if (pool.next_acquirer < program.acquirers[index].size()) {
      try_start(lane_of(rank, program.acquirers[index][pool.next_acquirer]));
    }
  }
  wake_host(rank, op);
  try_start(lane_index);
}

}  // namespace ulysim::engine
