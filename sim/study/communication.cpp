#include "sim/study/communication.h"

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

}  // namespace

Communication communication_of(const workload::OpGraph& graph, const workload::Schedule& schedule,
                               const results::RankTimeline& rank, const Breakdown& breakdown) {
  Sums<workload::kCollectiveKinds> kinds;
  Sums<workload::kPurposes> purposes;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const workload::FlatOp& flat = schedule.ops[i];
    const auto* work = std::get_if<workload::CollectiveWork>(&flat.op->work);
    if (work == nullptr) {
      continue;
    }
    const workload::Instance& instance = graph.roles.front().program[flat.instance];
    const workload::BlockTemplate& block = graph.of(instance);
    const Bytes payload = workload::payload_of(graph, block, block.body(instance.phase), *flat.op);
    const Bytes sent = collectives::sent_bytes(work->kind, payload, graph.mesh.size(work->axes));
    const Duration took = rank.spans[i].end - rank.spans[i].begin;
    kinds.add(static_cast<std::size_t>(work->kind), sent, took);
    purposes.add(static_cast<std::size_t>(flat.op->purpose), sent, took);
  }
  return {.by_kind = kinds.list<workload::CollectiveKind>(breakdown.exposed_by_kind),
          .by_purpose = purposes.list<workload::Purpose>(breakdown.exposed_by_purpose)};
}

}  // namespace ulysim::study
