#include "sim/study/communication.h"

#include <algorithm>
#include <optional>

#include "sim/collectives/algorithm.h"
#include "sim/workload/shape.h"

namespace ulysim::study {

namespace {

template <std::size_t N>
struct Sums {
  std::array<Bytes, N> bytes{};
  std::array<Duration, N> time{};
  std::array<bool, N> used{};

  void add(std::size_t index, Bytes sent, Duration took) {
    bytes.at(index) += sent;
    time.at(index) += took;
    used.at(index) = true;
  }

  /// Bytes are those of the role that sends most; times are of one role only.
  void take(const Sums& role) {
    for (std::size_t i = 0; i < N; ++i) {
      bytes.at(i) = std::max(bytes.at(i), role.bytes.at(i));
      time.at(i) += role.time.at(i);
      used.at(i) = used.at(i) || role.used.at(i);
    }
  }

  template <class Enum>
  std::vector<results::CommunicationUse> list(const std::array<Duration, N>& exposed) const {
    std::vector<results::CommunicationUse> out;
    for (std::size_t i = 0; i < N; ++i) {
      if (used.at(i)) {
        out.push_back({.name = name(static_cast<Enum>(i)),
                       .bytes_per_gpu = bytes.at(i),
                       .time = time.at(i),
                       .exposed = exposed.at(i)});
      }
    }
    return out;
  }
};

Bytes sent_by(const workload::OpGraph& graph, const workload::BlockTemplate& block, const workload::Body& body,
              const workload::Op& op) {
  const Bytes payload = workload::payload_of(graph, block, body, op);
  if (const auto* message = std::get_if<workload::PipelineWork>(&op.work)) {
    return message->side == workload::PipelineWork::Side::send ? payload : Bytes{};
  }
  const auto& work = std::get<workload::CollectiveWork>(op.work);
  return collectives::sent_bytes(work.kind, payload, graph.mesh.size(work.axes));
}

/// The end of a message waits for the other one, which is no communication yet.
Instant moving_since(const workload::Op& op, const results::Span& span) {
  return std::holds_alternative<workload::PipelineWork>(op.work) ? span.joined : span.begin;
}

}  // namespace

Communication communication_of(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules,
                               const results::RankTimeline& rank, const Breakdown& breakdown) {
  Sums<workload::kCollectiveKinds> kinds;
  Sums<workload::kPurposes> purposes;
  for (const workload::Schedule& schedule : schedules) {
    Sums<workload::kCollectiveKinds> own_kinds;
    Sums<workload::kPurposes> own_purposes;
    const workload::Role& role = graph.roles[schedule.role];
    for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
      const workload::FlatOp& flat = schedule.ops[i];
      const std::optional<workload::CollectiveKind> kind = kind_of(*flat.op);
      if (!kind) {
        continue;
      }
      const workload::Instance& instance = role.program[flat.instance];
      const workload::BlockTemplate& block = graph.of(instance);
      const Bytes sent = sent_by(graph, block, block.body(instance.phase), *flat.op);
      const Duration took =
          schedule.role == rank.role ? rank.spans[i].end - moving_since(*flat.op, rank.spans[i]) : Duration{};
      own_kinds.add(static_cast<std::size_t>(*kind), sent, took);
      own_purposes.add(static_cast<std::size_t>(flat.op->purpose), sent, took);
    }
    kinds.take(own_kinds);
    purposes.take(own_purposes);
  }
  return {.by_kind = kinds.list<workload::CollectiveKind>(breakdown.exposed_by_kind),
          .by_purpose = purposes.list<workload::Purpose>(breakdown.exposed_by_purpose)};
}

}  // namespace ulysim::study
