#include "sim/study/trace.h"

#include <fmt/format.h>

#include "sim/memory/accountant.h"
#include "sim/study/trace_flows.h"

namespace ulysim::study {

namespace {

results::TraceRank rank_of(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules,
                           const results::RankTimeline& rank) {
  const workload::Schedule& schedule = schedules[rank.role];
  results::TraceRank trace{.name = fmt::format("rank {}", rank.representative.index()),
                           .members = static_cast<std::int64_t>(rank.members.size())};
  if (schedules.size() > 1) {
    trace.name += fmt::format(", {}", graph.roles[rank.role].name);
  }
  if (rank.members.size() > 1) {
    trace.name += fmt::format(" (of {} alike)", rank.members.size());
  }
  std::array<std::int64_t, workload::kStreams> shown{};
  for (std::size_t stream = 0; stream < workload::kStreams; ++stream) {
    shown.at(stream) = -1;
    if (!schedule.streams.at(stream).empty()) {
      shown.at(stream) = static_cast<std::int64_t>(trace.streams.size());
      trace.streams.emplace_back(name(static_cast<workload::Stream>(stream)));
    }
  }
  trace.spans.reserve(schedule.ops.size());
  for (std::size_t op = 0; op < schedule.ops.size(); ++op) {
    const workload::FlatOp& flat = schedule.ops[op];
    trace.spans.push_back({.name = label_of(graph, schedule, op),
                           .purpose = name(flat.op->purpose),
                           .stream = static_cast<std::uint32_t>(shown.at(static_cast<std::size_t>(flat.op->stream))),
                           .begin = rank.spans[op].begin,
                           .end = rank.spans[op].end});
  }
  for (const memory::Sample& sample : memory::account(graph, schedule, rank).gpu.curve) {
    trace.gpu_memory.push_back({.at = sample.at, .allocated = Bytes(sample.bytes)});
  }
  return trace;
}

}  // namespace

std::string label_of(const workload::OpGraph& graph, const workload::Schedule& schedule, std::size_t op) {
  const workload::FlatOp& flat = schedule.ops[op];
  const workload::Instance& instance = graph.roles[schedule.role].program[flat.instance];
  const workload::BlockTemplate& block = graph.of(instance);
  const std::string where =
      block.kind == workload::BlockKind::layer ? fmt::format("layer {}", workload::layer_number(instance)) : block.name;
  return fmt::format("{} {} {}", where, name(instance.phase), flat.op->name);
}

results::Trace trace_of(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules,
                        const results::Timeline& timeline) {
  results::Trace out;
  for (const results::RankTimeline& rank : timeline.ranks) {
    out.ranks.push_back(rank_of(graph, schedules, rank));
  }
  out.flows = flows_of(graph, schedules, timeline);
  out.loads = timeline.loads;
  return out;
}

}  // namespace ulysim::study
