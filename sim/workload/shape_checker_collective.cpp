#include <fmt/format.h>

#include "sim/workload/dump.h"
#include "sim/workload/shape_checker.h"

namespace ulysim::workload {

namespace {

/// `extent` with the axes of `gone` taken off its split.
Extent without(Extent extent, AxisSet gone) {
  std::erase_if(extent.split, [gone](MeshAxis axis) { return gone.contains(axis); });
  return extent;
}

}  // namespace

void ShapeChecker::check_work(const Op& op, const CollectiveWork& work) {
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

void ShapeChecker::check_collective(const Op& op, const CollectiveWork& work, const Tensor& in, const Tensor& out) {
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

}  // namespace ulysim::workload
