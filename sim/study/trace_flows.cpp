#include "sim/study/trace_flows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/study/trace.h"

namespace ulysim::study {

namespace {

using workload::MeshAxis;

class FlowFinder {
 public:
  FlowFinder(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules,
             const results::Timeline& timeline)
      : graph_(&graph), schedules_(schedules), timeline_(&timeline), class_of_(class_of_ranks(graph, timeline)) {
    for (const workload::Schedule& schedule : schedules) {
      for (std::uint32_t op = 0; op < schedule.ops.size(); ++op) {
        const auto* work = std::get_if<workload::PipelineWork>(&schedule.ops[op].op->work);
        if (work != nullptr && work->side == workload::PipelineWork::Side::receive) {
          receive_[{work->tag, micro_batch(schedule, op)}] = op;
        }
      }
    }
  }

  std::vector<results::TraceFlow> find() {
    for (std::uint32_t rank = 0; rank < timeline_->ranks.size(); ++rank) {
      const workload::Schedule& schedule = schedules_[timeline_->ranks[rank].role];
      for (std::uint32_t op = 0; op < schedule.ops.size(); ++op) {
        const workload::Op& what = *schedule.ops[op].op;
        if (const auto* message = std::get_if<workload::PipelineWork>(&what.work)) {
          add_message(rank, op, *message);
        } else if (const auto* collective = std::get_if<workload::CollectiveWork>(&what.work)) {
          add_collective(rank, op, *collective);
        }
      }
    }
    return std::move(flows_);
  }

 private:
  static std::vector<std::uint32_t> class_of_ranks(const workload::OpGraph& graph, const results::Timeline& timeline) {
    std::vector<std::uint32_t> out(static_cast<std::size_t>(graph.mesh.world()));
    for (std::uint32_t rank = 0; rank < timeline.ranks.size(); ++rank) {
      for (const RankId member : timeline.ranks[rank].members) {
        out[member.index()] = rank;
      }
    }
    return out;
  }

  [[nodiscard]] std::int32_t micro_batch(const workload::Schedule& schedule, std::uint32_t op) const {
    return graph_->roles[schedule.role].program[schedule.ops[op].instance].micro_batch;
  }

  void add(results::TraceFlow::End from, results::TraceFlow::End to) {
    const results::Span& begins = timeline_->ranks[from.rank].spans[from.span];
    const results::Span& ends = timeline_->ranks[to.rank].spans[to.span];
    if (from.rank != to.rank && begins.begin < ends.end && ends.begin < begins.end) {
      const workload::Schedule& schedule = schedules_[timeline_->ranks[from.rank].role];
      flows_.push_back({.name = label_of(*graph_, schedule, from.span), .from = from, .to = to});
    }
  }

  void add_message(std::uint32_t rank, std::uint32_t op, const workload::PipelineWork& work) {
    if (work.side == workload::PipelineWork::Side::receive) {
      return;  // drawn from its sender
    }
    const RankId sender = timeline_->ranks[rank].representative;
    const auto stage = static_cast<std::size_t>(graph_->roles[work.peer_role].stage);
    const RankId receiver = graph_->mesh.group(sender, {MeshAxis::pipeline}).at(stage);
    const auto found = receive_.find({work.tag, micro_batch(schedules_[timeline_->ranks[rank].role], op)});
    if (found != receive_.end()) {
      add({.rank = rank, .span = op}, {.rank = class_of_[receiver.index()], .span = found->second});
    }
  }

  /// The classes of the group of a class's representative, in the order of the group.
  const std::vector<std::uint32_t>& group_of(std::uint32_t rank, workload::AxisSet axes) {
    const auto [place, fresh] = groups_.try_emplace({axes.bits(), rank});
    if (fresh) {
      for (const RankId member : graph_->mesh.group(timeline_->ranks[rank].representative, axes)) {
        const std::uint32_t other = class_of_[member.index()];
        if (timeline_->ranks[other].role == timeline_->ranks[rank].role) {
          place->second.push_back(other);
        }
      }
    }
    return place->second;
  }

  void add_collective(std::uint32_t rank, std::uint32_t op, const workload::CollectiveWork& work) {
    const std::vector<std::uint32_t>& group = group_of(rank, work.axes);
    if (work.kind == workload::CollectiveKind::send_recv) {
      const auto own = std::find(group.begin(), group.end(), rank);
      const std::uint32_t next = own + 1 == group.end() ? group.front() : *(own + 1);
      add({.rank = rank, .span = op}, {.rank = next, .span = op});
      return;
    }
    const auto begin = [&](std::uint32_t other) { return timeline_->ranks[other].spans[op].begin; };
    const auto last = *std::max_element(group.begin(), group.end(),
                                        [&](std::uint32_t a, std::uint32_t b) { return begin(a) < begin(b); });
    // Drawn to each class once, and when its own turn comes.
    if (begin(last) > begin(rank)) {
      add({.rank = last, .span = op}, {.rank = rank, .span = op});
    }
  }

  const workload::OpGraph* graph_;
  std::span<const workload::Schedule> schedules_;
  const results::Timeline* timeline_;
  std::vector<std::uint32_t> class_of_;
  std::map<std::pair<std::int64_t, std::int32_t>, std::uint32_t> receive_;  ///< by tag and micro-batch
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::vector<std::uint32_t>> groups_;
  std::vector<results::TraceFlow> flows_;
};

}  // namespace

std::vector<results::TraceFlow> flows_of(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules,
                                         const results::Timeline& timeline) {
  return timeline.ranks.size() < 2 ? std::vector<results::TraceFlow>() : FlowFinder(graph, schedules, timeline).find();
}

}  // namespace ulysim::study
