#include "sim/workload/shape_checker.h"

#include <fmt/format.h>

#include <set>

namespace ulysim::workload {

namespace {

bool same_sharding(const Extent& a, const Extent& b) {
  // KV replication changes the number of key/value heads in an element-wise op and nothing else.
  return a.split == b.split && a.layout == b.layout && a.multiple == b.multiple &&
         (a.size == b.size || a.dim == Dim::kv_heads);
}

}  // namespace

AxisSet axes_of(const Extent& extent) {
  AxisSet axes;
  for (const MeshAxis axis : extent.split) {
    axes.insert(axis);
  }
  return axes;
}

std::string text(const Extent& extent) {
  std::string split;
  for (const MeshAxis axis : extent.split) {
    split += fmt::format("/{}", name(axis));
  }
  return fmt::format("{}={}{}", name(extent.dim), extent.size, split);
}

ShapeChecker::ShapeChecker(const OpGraph& graph, const BlockTemplate& block, std::vector<std::string>& findings)
    : graph_(graph), block_(block), findings_(findings), written_(block.tensors.size(), false) {
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const Tensor& tensor = block.tensors[i];
    written_[i] = tensor.persistent || comes_in(tensor.port);
  }
}

void ShapeChecker::run() {
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

void ShapeChecker::find(const Op& op, const std::string& what) {
  findings_.push_back(fmt::format("{}.{}.{}: {}", block_.name, name(phase_), op.name, what));
}

void ShapeChecker::check(const Op& op) {
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

void ShapeChecker::check_loops(const Body& body) {
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

bool ShapeChecker::is_part(const Body& body, const Op& op) {
  if (op.loop < 0 || static_cast<std::size_t>(op.loop) >= body.loops.size()) {
    return false;
  }
  const std::int64_t trips = body.loops[static_cast<std::size_t>(op.loop)].trips;
  return *op.part >= 0 && *op.part < trips && op.repeats >= 1 && op.repeats <= trips;
}

void ShapeChecker::no_partial(const Op& op, TensorId id) {
  if (!at(id).partial.empty()) {
    find(op,
         fmt::format("reads {}, a partial sum over {}: it was never reduced", at(id).name, to_string(at(id).partial)));
  }
}

void ShapeChecker::match(const Op& op, const Tensor& a, const Tensor& b, Dim dim) {
  const Extent* left = a.find(dim);
  const Extent* right = b.find(dim);
  if (left == nullptr || right == nullptr) {
    find(op, fmt::format("{} and {} do not both have {}", a.name, b.name, name(dim)));
  } else if (!same_sharding(*left, *right)) {
    find(op, fmt::format("{} has {} but {} has {}", a.name, text(*left), b.name, text(*right)));
  }
}

void ShapeChecker::check_work(const Op& op, const GemmWork& work) {
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

void ShapeChecker::check_work(const Op& op, const PipelineWork& work) {
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

void ShapeChecker::check_work(const Op& op, const CopyWork&) {
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

}  // namespace ulysim::workload
