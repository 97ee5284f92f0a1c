#include "sim/engine/engine.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/simulation.h"

namespace ulysim::engine {
Simulation::Simulation(const Programs& programs, const Folding& folding, const Machine& machine, LinkLoads loads)
    : programs_(programs), folding_(folding), machine_(machine), network_(folding.capacities), loads_(loads) {
  const std::size_t ranks = folding.ranks.size();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    begin_.push_back(left_);
    left_ += program_of(rank).size();
  }
  lanes_.resize(ranks * workload::kStreams);
  ranks_.resize(ranks);
  issued_.resize(left_);
  missing_.reserve(left_);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Program& program = program_of(rank);
    for (std::size_t op = 0; op < program.size(); ++op) {
      missing_.push_back(static_cast<std::uint32_t>(program.schedule->dependencies_of(op).size()));
    }
    const RankClass& rank_class = folding.ranks[rank];
    timeline_.ranks.push_back(
        {.representative = rank_class.representative, .role = rank_class.role, .members = rank_class.members});
    timeline_.ranks.back().spans.resize(program.size());
  }
  count_arrivals();
}

void Simulation::count_arrivals() {
  std::size_t arrivals = 0;
  for (const Program& program : programs_.of_role) {
    std::vector<std::size_t>& begin = arrivals_begin_.emplace_back();
    begin.reserve(program.size());
    for (std::uint32_t op = 0; op < program.size(); ++op) {
      const OpKind& kind = program.kind(op);
      if (kind.work == OpKind::Work::message) {
        // Both ends count in one place: that of the end whose role comes first.
        const Message& message = programs_.messages[program.message_of[op]];
        const bool sends = std::get<workload::PipelineWork>(kind.op->work).side == workload::PipelineWork::Side::send;
        const Message::End& other = message.ends[sends ? 1 : 0];
        if (other.role < program.schedule->role) {
          begin.push_back(arrivals_begin_[other.role][other.op]);
          continue;
        }
      }
      begin.push_back(arrivals);
      if (kind.pattern) {
        arrivals += folding_.patterns[*kind.pattern].transactions.size();
      }
    }
  }
  arrived_.resize(arrivals, 0);
}

results::Timeline Simulation::run() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    issue(rank);
  }
  finish_all();
  settle_rates();
  while (left_ > 0) {
    std::optional<Instant> next = network_.next_completion();
    if (!events_.empty() && (!next || events_.next() < *next)) {
      next = events_.next();
    }
    if (!next) {
      report_blocked();
    }
    now_ = *next;
    completed_.clear();
    network_.advance(now_, completed_);
    for (const network::FlowNetwork::Handle flow : completed_) {
      flow_done(flow);
    }
    while (!events_.empty() && events_.next() == now_) {
      handle(events_.pop());
    }
    finish_all();
    settle_rates();
    if (loads_ == LinkLoads::recorded) {
      record_loads();
    }
  }
  timeline_.end = now_;
  report_links(timeline_);
  return std::move(timeline_);
}

void Simulation::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kernel_ends:
      if (lanes_[event.subject].version == event.version) {
        ended_.push_back(event.subject);
      }
      return;
    case Event::Kind::issued:
      try_start(event.subject);
      return;
    case Event::Kind::latency_spent:
      begin_step(event.subject);
      return;
    case Event::Kind::tail_spent:
      end_activity(event.subject);
      return;
  }
}

void Simulation::settle_rates() {
  for (const std::uint32_t rank : unrated_) {
    ranks_[rank].unrated = false;
    for (std::uint32_t stream = 0; stream < workload::kStreams; ++stream) {
      rate_kernel(static_cast<std::uint32_t>(rank * workload::kStreams + stream));
    }
  }
  unrated_.clear();
}

void Simulation::report_links(results::Timeline& timeline) {
  const auto carried = network_.carried();
  for (std::size_t link = 0; link < folding_.links.size(); ++link) {
    const topology::Link& representative = machine_.topology->links()[folding_.links[link].representative.index()];
    if (representative.kind == topology::LinkKind::nvme && carried[link] == 0.0) {
      continue;  // a step that does not use the drives says nothing about them
    }
    timeline.links.push_back({.name = representative.name,
                              .kind = name(representative.kind),
                              .capacity = representative.capacity.value(),
                              .carried = carried[link],
                              .members = folding_.links[link].members});
  }
}

/// The busiest link of each kind tells whether that kind holds the flows back.
void Simulation::record_loads() {
  network_.loads(rates_);
  const auto links = machine_.topology->links();
  std::array<double, topology::kLinkKinds> busiest{};
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    double& most = busiest.at(static_cast<std::size_t>(links[folding_.links[i].representative.index()].kind));
    most = std::max(most, rates_[i] / folding_.capacities[i]);
  }
  timeline_.loads.resize(busiest.size());
  for (std::size_t kind = 0; kind < busiest.size(); ++kind) {
    results::LinkLoadCurve& curve = timeline_.loads[kind];
    curve.kind = name(static_cast<topology::LinkKind>(kind));
    if (!curve.samples.empty() && curve.samples.back().at == now_) {
      curve.samples.back().busiest = busiest.at(kind);
    } else if (curve.samples.empty() ? busiest.at(kind) > 0.0 : curve.samples.back().busiest != busiest.at(kind)) {
      curve.samples.push_back({.at = now_, .busiest = busiest.at(kind)});
    }
  }
}

results::Timeline simulate(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules,
                           const Machine& machine, const Options& options) {
  ULYSIM_CHECK(graph.roles.size() == schedules.size(), "{} schedules of {} roles", schedules.size(),
               graph.roles.size());
  const std::int64_t sms = machine.cluster->gpu.sms.value;
  ULYSIM_CHECK(machine.host.communication_sms >= 0 && machine.host.communication_sms < sms,
               "collectives take {} of {} SMs", machine.host.communication_sms, sms);
  const Folding folding = fold(graph, *machine.topology, options.fold);
  const Programs programs = prepare(graph, schedules, folding, machine);
  return Simulation(programs, folding, machine, options.loads).run();
}

}  // namespace ulysim::engine
