#include "sim/workload/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/workload/dump.h"
#include "sim/workload/verify_internal.h"

namespace ulysim::workload {

namespace {

bool same_sharding(const Extent& a, const Extent& b) {
  // KV replication changes the number of key/value heads in an element-wise op and nothing else.
  return a.split == b.split && a.layout == b.layout && a.multiple == b.multiple &&
         (a.size == b.size || a.dim == Dim::kv_heads);
}

AxisSet axes_of(const Extent& extent) {
  AxisSet axes;
  for (const MeshAxis axis : extent.split) {
    axes.insert(axis);
  }
  return axes;
}

/// `extent` with the axes of `gone` taken off its split.
Extent without(Extent extent, AxisSet gone) {
  std::erase_if(extent.split, [gone](MeshAxis axis) { return gone.contains(axis); });
  return extent;
}

std::string text(const Extent& extent) {
  std::string split;
  for (const MeshAxis axis : extent.split) {
    split += fmt::format("/{}", name(axis));
  }
  return fmt::format("{}={}{}", name(extent.dim), extent.size, split);
}

/// Checks the ops of one template.
class ShapeChecker {
 public:
  ShapeChecker(const OpGraph& graph, const BlockTemplate& block, std::vector<std::string>& findings)
      : graph_(graph), block_(block), findings_(findings), written_(block.tensors.size(), false) {
    for (std::size_t i = 0; i < block.tensors.size(); ++i) {
      const Tensor& tensor = block.tensors[i];
      written_[i] = tensor.persistent || comes_in(tensor.port);
    }
  }

  void run() {
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
      phase_ = phase;
      const Body& body = block_.body(phase);
      body_ = &body;
      check_loops(body);
      for (const Op& op : body.ops) {
        check(op);
      }
      check_ring_coverage(body);
      check_chunk_coverage(body);
    }
  }

 private:
  void find(const Op& op, const std::string& what) {
    findings_.push_back(fmt::format("{}.{}.{}: {}", block_.name, name(phase_), op.name, what));
  }

  const Tensor& at(TensorId id) const { return block_.tensor(id); }

  void check(const Op& op) {
    for (const auto* list : {&op.reads, &op.writes}) {
      for (const TensorId id : *list) {
        if (id.index() >= block_.tensors.size()) {
          find(op, "names a tensor that is not there");
          return;
        }
      }
    }
    for (const TensorId id : op.reads) {
      if (!written_[id.index()]) {
        find(op, fmt::format("reads {} before anything wrote it", at(id).name));
      }
    }
    std::visit([&](const auto& work) { check_work(op, work); }, op.work);
    for (const TensorId id : op.writes) {
      written_[id.index()] = true;
      producer_[id.index()] = &op;
    }
  }

  void check_loops(const Body& body) {
    std::set<std::int32_t> closed;
    std::int32_t open = -1;
    for (const Op& op : body.ops) {
      if (op.part && !is_part(body, op)) {
        find(op, "is a part of no loop");
        continue;
      }
      if (op.loop >= 0 && !op.part && op.stream != Stream::compute) {
        find(op, "a loop holds compute ops only");
      }
      const std::int32_t within = op.part ? -1 : op.loop;
      if (within != open) {
        closed.insert(open);
        open = within;
        if (open >= 0 && (closed.count(open) != 0 || static_cast<std::size_t>(open) >= body.loops.size())) {
          find(op, "its loop is not one run of ops");
        }
      }
    }
  }

  /// A part stands within its loop.
  static bool is_part(const Body& body, const Op& op) {
    if (op.loop < 0 || static_cast<std::size_t>(op.loop) >= body.loops.size()) {
      return false;
    }
    const std::int64_t trips = body.loops[static_cast<std::size_t>(op.loop)].trips;
    return *op.part >= 0 && *op.part < trips && op.repeats >= 1 && op.repeats <= trips;
  }

  void no_partial(const Op& op, TensorId id) {
    if (!at(id).partial.empty()) {
      find(op, fmt::format("reads {}, a partial sum over {}: it was never reduced", at(id).name,
                           to_string(at(id).partial)));
    }
  }

  void check_work(const Op& op, const GemmWork& work) {
    if (op.reads.size() < 2 || op.writes.size() != 1) {
      find(op, "a matrix product reads two tensors and writes one");
      return;
    }
    const Tensor& a = at(op.reads[0]);
    const Tensor& b = at(op.reads[1]);
    const Tensor& c = at(op.writes[0]);
    no_partial(op, op.reads[0]);
    no_partial(op, op.reads[1]);
    AxisSet contracted;
    for (const Dim dim : work.groups) {
      match(op, a, b, dim);
      match(op, a, c, dim);
    }
    for (const Dim dim : work.m) {
      match(op, a, c, dim);
    }
    for (const Dim dim : work.n) {
      match(op, b, c, dim);
    }
    for (const Dim dim : work.k) {
      match(op, a, b, dim);
      if (const Extent* extent = a.find(dim)) {
        contracted = contracted | axes_of(*extent);
      }
    }
    if (!(graph_.mesh.on_grid(contracted) == graph_.mesh.on_grid(c.partial))) {
      find(op, fmt::format("contracts over {} but its result {} is partial over {}", to_string(contracted), c.name,
                           to_string(c.partial)));
    }
  }

  void match(const Op& op, const Tensor& a, const Tensor& b, Dim dim) {
    const Extent* left = a.find(dim);
    const Extent* right = b.find(dim);
    if (left == nullptr || right == nullptr) {
      find(op, fmt::format("{} and {} do not both have {}", a.name, b.name, name(dim)));
    } else if (!same_sharding(*left, *right)) {
      find(op, fmt::format("{} has {} but {} has {}", a.name, text(*left), b.name, text(*right)));
    }
  }

  void check_work(const Op& op, const AttentionWork& work) {
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
          find(op, fmt::format("sees {} of the tokens only: an all-to-all or a gather over {} is missing",
                               text(*extent), name(axis)));
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

  void check_heads(const Op& op, const Extent& q_heads, const Extent& k_heads) {
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

  /// A key/value tensor of ring step s must come straight from the transfer of the tensor of step s−1, or hold all.
  void check_ring(const Op& op, const AttentionWork& work, TensorId id) {
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

  /// With keys split over the ring, the calls of one pass together see every rank's keys exactly once.
  void check_ring_coverage(const Body& body) {
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

  /// The parts of an attention call together do all of it: every part of the heads once, or every pair of chunks that
  /// the mask does not hide.
  void check_chunk_coverage(const Body& body) {
    std::map<std::tuple<kernel::Direction, bool, std::int64_t>, std::pair<std::int64_t, const Op*>> runs;
    for (const Op& op : body.ops) {
      const auto* work = std::get_if<AttentionWork>(&op.work);
      if (work != nullptr && is_written_out(body, op)) {
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
  static bool is_written_out(const Body& body, const Op& op) { return op.part && is_part(body, op); }

  void match_activations(const Op& op, const Tensor& a, const Tensor& b) {
    if (a.rows() == nullptr || b.rows() == nullptr) {
      return;
    }
    if (a.rows()->dim != b.rows()->dim) {
      // Tokens against the slots of experts: a permutation, within what each rank holds.
      if (!(samples_cut(a) == samples_cut(b))) {
        find(op, fmt::format("{} holds other tokens than {}: an all-to-all to or from the experts is missing", a.name,
                             b.name));
      }
      return;
    }
    for (const Extent& extent : a.shape) {
      if (b.find(extent.dim) != nullptr) {
        match(op, a, b, extent.dim);
      }
    }
  }

  /// The axes over which samples are split.
  AxisSet samples_cut(const Tensor& tensor) const {
    AxisSet axes;
    for (const Extent& extent : tensor.shape) {
      if (extent.dim == Dim::batch || extent.dim == Dim::tokens || extent.dim == Dim::slots) {
        axes = axes | axes_of(extent);
      }
    }
    return graph_.mesh.on_grid(axes);
  }

  void match_weights(const Op& op, const Tensor& a, const Tensor& b) {
    const auto same_dim = [](const Extent& x, const Extent& y) { return x.dim == y.dim; };
    const auto is_flat = [](const Tensor& t) { return t.shape.size() == 1 && t.shape.front().dim == Dim::elements; };
    if (is_flat(a) && is_flat(b)) {
      // Laid out by nothing but their length: one may tell a shard by its cut, the other by what is left.
      if (local_elements(a, graph_.mesh) != local_elements(b, graph_.mesh)) {
        find(op, fmt::format("{} has {} but {} has {}", a.name, text(a.shape.front()), b.name, text(b.shape.front())));
      }
      return;
    }
    if (a.rows() == nullptr && std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(), same_dim)) {
      for (const Extent& extent : a.shape) {
        match(op, a, b, extent.dim);
      }
    }
  }

  void check_work(const Op& op, const ElementwiseWork& work) {
    AxisSet summed;
    for (const TensorId id : op.reads) {
      summed = summed | at(id).partial;
    }
    std::vector<TensorId> all = op.reads;
    all.insert(all.end(), op.writes.begin(), op.writes.end());
    // Activations of one op share their tokens and heads; weights and their gradients go pair by pair.
    for (std::size_t i = 1; i < all.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        match_activations(op, at(all[j]), at(all[i]));
      }
    }
    for (std::size_t i = 0; i < op.reads.size() && i < op.writes.size(); ++i) {
      match_weights(op, at(op.reads[i]), at(op.writes[i]));
    }
    for (const Traffic& t : work.traffic) {
      if (std::find(all.begin(), all.end(), t.tensor) == all.end()) {
        find(op, "moves bytes of a tensor that it neither reads nor writes");
      }
    }
    if (!summed.empty()) {
      // Adding up partial sums is linear; anything else must wait for the reduction.
      for (const TensorId id : all) {
        if (!(at(id).partial == summed)) {
          find(op, fmt::format("mixes {} (partial over {}) with partial sums over {}", at(id).name,
                               to_string(at(id).partial), to_string(summed)));
        }
      }
      return;
    }
    for (const TensorId id : op.writes) {
      // What an output lacks was summed over: tokens in a weight gradient, vocabulary in a look-up, heads in the
      // gradient of a key that all share.
      const Tensor& out = at(id);
      AxisSet expected;
      for (const TensorId in : op.reads) {
        for (const Extent& extent : at(in).shape) {
          const bool sample = extent.dim == Dim::batch || extent.dim == Dim::tokens || extent.dim == Dim::slots;
          const bool head = extent.dim == Dim::heads || extent.dim == Dim::kv_heads;
          const bool headless = out.find(Dim::heads) == nullptr && out.find(Dim::kv_heads) == nullptr;
          const bool contracted = (sample && out.rows() == nullptr) || (head && out.rows() != nullptr && headless) ||
                                  (extent.dim == Dim::vocab && out.find(Dim::tokens) != nullptr);
          if (contracted && out.find(extent.dim) == nullptr) {
            expected = expected | axes_of(extent);
          }
        }
      }
      if (!(graph_.mesh.on_grid(expected) == graph_.mesh.on_grid(out.partial))) {
        find(op, fmt::format("writes {}, which should be partial over {} but is over {}", out.name, to_string(expected),
                             to_string(out.partial)));
      }
    }
  }

  void check_work(const Op& op, const CollectiveWork& work) {
    if (op.reads.size() != op.writes.size() || op.reads.empty()) {
      find(op, "a collective turns each tensor into one");
      return;
    }
    if (graph_.mesh.size(work.axes) < 2) {
      find(op, fmt::format("a collective over {} has one member", to_string(work.axes)));
    }
    for (std::size_t i = 0; i < op.reads.size(); ++i) {
      const Tensor& in = at(op.reads[i]);
      const Tensor& out = at(op.writes[i]);
      if (in.shape.size() != out.shape.size()) {
        find(op, fmt::format("{} and {} differ in rank", in.name, out.name));
        continue;
      }
      check_collective(op, work, in, out);
    }
  }

  void check_collective(const Op& op, const CollectiveWork& work, const Tensor& in, const Tensor& out) {
    const AxisSet axes = graph_.mesh.without_trivial(work.axes);
    AxisSet off;  // taken off some extent of `in`
    AxisSet on;   // put on some extent of `out`
    for (std::size_t d = 0; d < in.shape.size(); ++d) {
      const Extent& a = in.shape[d];
      const Extent& b = out.shape[d];
      const bool same_rest = without(a, axes) == without(b, axes);
      if (a.dim != b.dim || !same_rest) {
        find(op, fmt::format("turns {} into {}", text(a), text(b)));
        return;
      }
      for (const MeshAxis axis : kAllAxes) {
        if (axes.contains(axis) && a.split_by(axis) != b.split_by(axis)) {
          (a.split_by(axis) ? off : on).insert(axis);
          const std::optional<Dim> expected = a.split_by(axis) ? work.from : work.to;
          if (expected && *expected != a.dim) {
            find(op, fmt::format("moves the split of {} instead of {}", name(a.dim), name(*expected)));
          }
        }
      }
    }
    AxisSet summed;  // partial before and not after
    for (const MeshAxis axis : kAllAxes) {
      if (in.partial.contains(axis) && !out.partial.contains(axis)) {
        summed.insert(axis);
      }
      if (!in.partial.contains(axis) && out.partial.contains(axis)) {
        find(op, fmt::format("makes {} partial", out.name));
      }
    }
    bool right = false;
    switch (work.kind) {
      case CollectiveKind::all_to_all:
        right = off == axes && on == axes && summed.empty();
        break;
      case CollectiveKind::all_gather:
        right = off == axes && on.empty() && summed.empty();
        break;
      case CollectiveKind::reduce_scatter:
        right = off.empty() && on == axes && graph_.mesh.without_trivial(summed) == axes;
        break;
      case CollectiveKind::all_reduce:
        right = off.empty() && on.empty() && graph_.mesh.without_trivial(summed) == axes;
        break;
      case CollectiveKind::send_recv:
        right = off.empty() && on.empty() && summed.empty();
        break;
    }
    if (!right) {
      find(op, fmt::format("is no {} over {} of {} into {}", name(work.kind), to_string(work.axes), describe(in),
                           describe(out)));
    }
  }

  void check_work(const Op& op, const PipelineWork& work) {
    if (work.peer_role >= graph_.roles.size()) {
      find(op, "sends to a role that is not there");
    }
    const bool sends = work.side == PipelineWork::Side::send;
    if (op.reads.empty() == sends || op.writes.empty() != sends) {
      find(op, "a message is read at one end and written at the other");
    }
    for (const TensorId id : op.reads) {
      no_partial(op, id);
    }
  }

  void check_work(const Op& op, const CopyWork&) {
    if (op.reads.size() != op.writes.size() || op.reads.empty()) {
      find(op, "a copy turns each tensor into one");
      return;
    }
    for (std::size_t i = 0; i < op.reads.size(); ++i) {
      const Tensor& from = at(op.reads[i]);
      const Tensor& to = at(op.writes[i]);
      if (from.shape != to.shape || from.space == to.space) {
        find(op, fmt::format("{} and {} are no two places of one tensor", from.name, to.name));
      }
    }
  }

  void check_work(const Op&, const HostWork&) {}

  const OpGraph& graph_;
  const BlockTemplate& block_;
  std::vector<std::string>& findings_;
  std::vector<bool> written_;
  std::map<std::size_t, const Op*> producer_;
  Phase phase_{Phase::forward};
  const Body* body_{};
};

/// Every tensor that a body allocates is freed once, and after its last use, in micro-batch `index` of `count`: what
/// only the last one frees would pile up in the others.
void verify_lifetimes(const BlockTemplate& block, std::int64_t index, std::int64_t count,
                      std::vector<std::string>& findings) {
  std::vector<int> state(block.tensors.size(), 0);  // 0 not there, 1 there, 2 gone
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const Tensor& tensor = block.tensors[i];
    state[i] = tensor.persistent || comes_in(tensor.port) ? 1 : 0;
  }
  const auto find = [&](const Op& op, TensorId id, const char* what) {
    findings.push_back(fmt::format("{}.{}: {} {}", block.name, op.name, what, block.tensor(id).name));
  };
  std::vector<bool> used(block.tensors.size(), false);
  for (const Body& body : block.bodies) {
    for (const Op& op : body.ops) {
      if (!runs_in(op.when, index == 0, index + 1 == count)) {
        continue;
      }
      for (const TensorId id : op.allocs) {
        if (state[id.index()] != 0) {
          find(op, id, "allocates a second time");
        }
        state[id.index()] = 1;
      }
      for (const auto* list : {&op.reads, &op.writes}) {
        for (const TensorId id : *list) {
          used[id.index()] = true;
          if (state[id.index()] != 1) {
            find(op, id, "uses while it is not allocated");
          }
        }
      }
      for (const TensorId id : op.frees) {
        if (state[id.index()] != 1 || block.tensor(id).persistent) {
          find(op, id, "frees what is not its to free:");
        }
        state[id.index()] = 2;
      }
    }
  }
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const Tensor& tensor = block.tensors[i];
    const bool handed_on = goes_out(tensor.port);
    if (!tensor.persistent && used[i] && state[i] != (handed_on ? 1 : 2)) {
      findings.push_back(fmt::format("{}: {} is {}", block.name, tensor.name,
                                     handed_on ? "handed on but not allocated" : "allocated and never freed"));
    }
  }
}

}  // namespace

std::vector<std::string> verify_shapes(const OpGraph& graph) {
  std::vector<std::string> findings;
  for (const BlockTemplate& block : graph.templates) {
    ShapeChecker(graph, block, findings).run();
  }
  return findings;
}

std::vector<std::string> verify(const OpGraph& graph) {
  std::vector<std::string> findings = verify_shapes(graph);
  for (const BlockTemplate& block : graph.templates) {
    // The last, the first, and one between.
    const std::int64_t count = graph.micro_batches;
    for (std::int64_t index = count - 1; index >= std::max<std::int64_t>(0, count - 3) && findings.empty(); --index) {
      verify_lifetimes(block, count > 3 && index == count - 3 ? 0 : index, count, findings);
    }
  }
  if (findings.empty()) {
    verify_execution(graph, findings);
  }
  return findings;
}

}  // namespace ulysim::workload
