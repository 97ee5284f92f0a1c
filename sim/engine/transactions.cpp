// How collectives, copies and host work use the links: participants arrive, latency passes, flows run step by step.
#include <algorithm>

#include "sim/base/check.h"
#include "sim/engine/simulation.h"

namespace ulysim::engine {
namespace {

double efficiency_of(const spec::Transport& transport, collectives::Kind kind) {
  switch (kind) {
    case collectives::Kind::all_to_all:
      return transport.all_to_all_efficiency.value;
    case collectives::Kind::all_gather:
    case collectives::Kind::reduce_scatter:
    case collectives::Kind::all_reduce:
      return transport.ring_efficiency.value;
    case collectives::Kind::send_recv:
      return transport.p2p_efficiency.value;
  }
  throw InternalError("a collective of no kind");
}

}  // namespace

const OpKind& Simulation::kind_of(const Activity& activity) const {
  return programs_.of_role[activity.role].kind(activity.op);
}

const Transaction& Simulation::transaction_of(const Activity& activity) const {
  return folding_.patterns[*kind_of(activity).pattern].transactions[activity.transaction];
}

/// What `rank` calls the op: the other end of a message belongs to another program.
std::uint32_t Simulation::op_of(const Activity& activity, std::uint32_t rank) const {
  if (folding_.ranks[rank].role == activity.role) {
    return activity.op;
  }
  const Message& message = programs_.messages[programs_.of_role[activity.role].message_of[activity.op]];
  return message.ends[message.ends[0].role == activity.role ? 1 : 0].op;
}

void Simulation::arrive(std::uint32_t lane_index, std::uint32_t op) {
  const std::size_t role = folding_.ranks[rank_of(lane_index)].role;
  const OpKind& kind = programs_.of_role[role].kind(op);
  if (!kind.pattern) {  // a group of one
    ended_.push_back(lane_index);
    return;
  }
  const PatternClasses& pattern = folding_.patterns[*kind.pattern];
  const auto& own = pattern.of_class[rank_of(lane_index)];
  lanes_[lane_index].pending = static_cast<std::uint32_t>(own.size());
  for (const std::uint32_t transaction : own) {
    const std::uint32_t arrived = ++arrived_[arrivals_begin_[role][op] + transaction];
    if (arrived == pattern.transactions[transaction].participants.size()) {
      launch(role, op, transaction);
    }
  }
}

void Simulation::launch(std::size_t role, std::uint32_t op, std::uint32_t transaction_index) {
  std::uint32_t index = 0;
  if (free_activities_.empty()) {
    index = static_cast<std::uint32_t>(activities_.size());
    activities_.emplace_back();
  } else {
    index = free_activities_.back();
    free_activities_.pop_back();
  }
  activities_[index] = {.role = role, .op = op, .transaction = transaction_index};
  const OpKind& kind = kind_of(activities_[index]);
  const Transaction& transaction = transaction_of(activities_[index]);
  for (const std::uint32_t rank : transaction.participants) {
    results::Span& span = timeline_.ranks[rank].spans[op_of(activities_[index], rank)];
    span.joined = now_;
    // A message keeps why its end was posted: that is long before it is needed.
    if (span.begin < now_ && kind.work != OpKind::Work::message) {
      span.cause = results::Cause::peers;
      span.cause_op = op;
    }
    if (kind.communicates()) {
      ++ranks_[rank].collectives;
      mark_unrated(rank);
    }
  }
  const Duration latency = latency_of(kind, transaction);
  if (latency.value() > 0) {
    events_.push(now_ + latency, Event::Kind::latency_spent, index, 0);
  } else {
    begin_step(index);
  }
}

Duration Simulation::latency_of(const OpKind& kind, const Transaction& transaction) const {
  if (!kind.communicates()) {
    return Duration{};
  }
  const spec::Cluster& cluster = *machine_.cluster;
  const bool crosses = transaction.fabric == Fabric::network;
  const spec::Transport& transport = crosses ? cluster.node.network : cluster.node.nvlink;
  Duration base = transport.base_latency.value;
  if (crosses && cluster.network.latency) {
    base = *cluster.network.latency;
  }
  return base + transport.step_latency.value * std::int64_t{transaction.total_steps};
}

double Simulation::wire_bytes(const OpKind& kind, const Transaction& transaction, const TransactionStep& step,
                              const FlowClass& flow) const {
  const std::int64_t divisor = transaction.divisor;
  const std::int64_t chunk = kind.payload / divisor + (kind.payload % divisor > 0 ? 1 : 0);
  const double bytes = static_cast<double>(chunk) * static_cast<double>(flow.chunks) * static_cast<double>(step.repeat);
  if (!kind.communicates()) {
    return bytes / kind.copy_efficiency;
  }
  const spec::Node& node = machine_.cluster->node;
  const double efficiency = efficiency_of(flow.fabric == Fabric::network ? node.network : node.nvlink,
                                          folding_.patterns[*kind.pattern].pattern.collective);
  ULYSIM_CHECK(efficiency > 0.0, "a transport of efficiency {}", efficiency);
  return bytes / efficiency;
}

void Simulation::begin_step(std::uint32_t index) {
  Activity& activity = activities_[index];
  const OpKind& kind = kind_of(activity);
  const Transaction& transaction = transaction_of(activity);
  if (kind.payload == 0 || activity.step == transaction.steps.size()) {
    end_flows(index);
    return;
  }
  const TransactionStep& step = transaction.steps[activity.step];
  for (const FlowClass& flow : step.flows) {
    const auto handle = network_.start(flow.crossings, wire_bytes(kind, transaction, step, flow));
    if (handle >= activity_of_.size()) {
      activity_of_.resize(std::size_t{handle} + 1);
    }
    activity_of_[handle] = index;
  }
  activity.flows = static_cast<std::uint32_t>(step.flows.size());
}

void Simulation::flow_done(network::FlowNetwork::Handle flow) {
  const std::uint32_t index = activity_of_[flow];
  Activity& activity = activities_[index];
  if (--activity.flows == 0) {
    ++activity.step;
    begin_step(index);
  }
}

void Simulation::end_flows(std::uint32_t index) {
  const Duration tail = kind_of(activities_[index]).tail;
  if (tail.value() > 0) {
    events_.push(now_ + tail, Event::Kind::tail_spent, index, 0);
  } else {
    end_activity(index);
  }
}

void Simulation::end_activity(std::uint32_t index) {
  const Activity activity = activities_[index];
  free_activities_.push_back(index);
  const bool communicates = kind_of(activity).communicates();
  for (const std::uint32_t rank : transaction_of(activity).participants) {
    if (communicates) {
      --ranks_[rank].collectives;
      mark_unrated(rank);
    }
    const std::uint32_t lane = lane_of(rank, op_of(activity, rank));
    if (--lanes_[lane].pending == 0) {
      ended_.push_back(lane);
    }
  }
}

}  // namespace ulysim::engine
