#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/workload/shape_checker.h"

namespace ulysim::workload {

void ShapeChecker::check_work(const Op& op, const AttentionWork& work) {
  const bool forward = work.direction == kernel::Direction::forward;
  if (op.reads.size() < (forward ? 3U : 6U) || op.writes.size() < (forward ? 2U : 3U)) {
    find(op, "attention lacks an operand");
    return;
  }
  const Tensor& q = at(op.reads[0]);
  const Tensor& k = at(op.reads[1]);
  for (const TensorId id : op.reads) {
    no_partial(op, id);
  }
  const Extent* q_tokens = q.find(Dim::tokens);
  const Extent* k_tokens = k.find(Dim::tokens);
  const Extent* q_heads = q.find(Dim::heads);
  const Extent* k_heads = k.find(Dim::kv_heads);
  if (q_tokens == nullptr || k_tokens == nullptr || q_heads == nullptr || k_heads == nullptr) {
    find(op, "attention needs tokens and heads");
    return;
  }
  AxisSet allowed{MeshAxis::ring};
  for (const Extent* extent : {q_tokens, k_tokens}) {
    for (const MeshAxis axis : extent->split) {
      if (!allowed.contains(axis) && graph_.mesh.size(axis) > 1) {
        find(op, fmt::format("sees {} of the tokens only: an all-to-all or a gather over {} is missing", text(*extent),
                             name(axis)));
      }
    }
  }
  if (q_heads->split != k_heads->split) {
    find(op, fmt::format("q has {} but k has {}", text(*q_heads), text(*k_heads)));
  }
  check_heads(op, *q_heads, *k_heads);
  if (!forward) {
    match(op, q, at(op.reads[5]), Dim::tokens);
    match(op, q, at(op.reads[5]), Dim::heads);
  }
  match(op, q, at(op.writes[0]), Dim::tokens);
  match(op, q, at(op.writes[0]), Dim::heads);
  check_ring(op, work, op.reads[1]);
  check_ring(op, work, op.reads[2]);
}

void ShapeChecker::check_heads(const Op& op, const Extent& q_heads, const Extent& k_heads) {
  std::int64_t queries = local_size(q_heads, graph_.mesh);
  std::int64_t keys = local_size(k_heads, graph_.mesh);
  if (op.loop >= 0) {
    const Loop& loop = body_->loops[static_cast<std::size_t>(op.loop)];
    const std::int64_t trips = loop.dim == Dim::heads ? loop.trips : 1;
    if (queries % trips != 0 || keys % loop.kv_trips != 0) {
      find(op, fmt::format("{} query and {} key/value heads do not divide into {} and {} parts", queries, keys, trips,
                           loop.kv_trips));
      return;
    }
    queries /= trips;
    keys /= loop.kv_trips;
  }
  if (queries % keys != 0) {
    find(op, fmt::format("{} query heads do not share {} key/value heads", queries, keys));
  }
}

void ShapeChecker::check_ring(const Op& op, const AttentionWork& work, TensorId id) {
  if (work.gathered_keys) {
    if (at(id).find(Dim::tokens)->split_by(MeshAxis::ring)) {
      find(op, fmt::format("takes a part of {}, which was not gathered over the ring", at(id).name));
    }
    return;
  }
  std::int64_t hops = 0;
  TensorId source = id;
  while (true) {
    const auto made = producer_.find(source.index());
    const Op* by = made == producer_.end() ? nullptr : made->second;
    const auto* move = by == nullptr ? nullptr : std::get_if<CollectiveWork>(&by->work);
    if (move == nullptr || move->kind != CollectiveKind::send_recv) {
      break;
    }
    const auto slot = std::find(by->writes.begin(), by->writes.end(), source) - by->writes.begin();
    source = by->reads[static_cast<std::size_t>(slot)];
    ++hops;
    if (hops > graph_.mesh.size(MeshAxis::ring)) {
      break;
    }
  }
  if (hops != work.key_shift) {
    find(op, fmt::format("attends to {} as of {} hops on the ring, but that tensor made {}", at(id).name,
                         work.key_shift, hops));
  }
}

void ShapeChecker::check_ring_coverage(const Body& body) {
  const std::int64_t rings = graph_.mesh.size(MeshAxis::ring);
  std::map<std::tuple<kernel::Direction, bool, std::int64_t>, std::vector<std::int64_t>> shifts;
  const Op* last = nullptr;
  for (const Op& op : body.ops) {
    const auto* work = std::get_if<AttentionWork>(&op.work);
    if (work == nullptr || op.reads.size() < 2) {
      continue;
    }
    const Extent* tokens = at(op.reads[1]).find(Dim::tokens);
    if (rings > 1 && tokens != nullptr && (tokens->split_by(MeshAxis::ring) || work->gathered_keys)) {
      shifts[{work->direction, op.recomputed, op.part.value_or(-1)}].push_back(work->key_shift);
      last = &op;
    }
  }
  for (auto& [pass, seen] : shifts) {
    std::sort(seen.begin(), seen.end());
    for (std::size_t i = 0; i < seen.size() || i < static_cast<std::size_t>(rings); ++i) {
      if (seen.size() != static_cast<std::size_t>(rings) || seen[i] != static_cast<std::int64_t>(i)) {
        find(*last, fmt::format("the ring of {} is seen in {} steps that do not cover it", rings, seen.size()));
        break;
      }
    }
  }
}

void ShapeChecker::check_chunk_coverage(const Body& body) {
  std::map<std::tuple<kernel::Direction, bool, std::int64_t>, std::pair<std::int64_t, const Op*>> runs;
  for (const Op& op : body.ops) {
    const auto* work = std::get_if<AttentionWork>(&op.work);
    if (work != nullptr && op.part && is_part(body, op)) {
      auto& [sum, last] = runs[{work->direction, op.recomputed, work->key_shift}];
      sum += op.repeats;
      last = &op;
    }
  }
  for (const auto& [pass, found] : runs) {
    const auto& [sum, op] = found;
    const Loop& loop = body.loops[static_cast<std::size_t>(op->loop)];
    const std::int64_t pairs = loop.dim == Dim::heads ? loop.trips : loop.trips * (loop.trips + 1) / 2;
    if (sum != pairs) {
      find(*op, fmt::format("its parts run {} times and not {}", sum, pairs));
    }
  }
}

}  // namespace ulysim::workload
