#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/shape_checker.h"

namespace ulysim::workload {

void ShapeChecker::match_activations(const Op& op, const Tensor& a, const Tensor& b) {
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

AxisSet ShapeChecker::samples_cut(const Tensor& tensor) const {
  AxisSet axes;
  for (const Extent& extent : tensor.shape) {
    if (extent.dim == Dim::batch || extent.dim == Dim::tokens || extent.dim == Dim::slots) {
      axes = axes | axes_of(extent);
    }
  }
  return graph_.mesh.on_grid(axes);
}

void ShapeChecker::match_weights(const Op& op, const Tensor& a, const Tensor& b) {
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

void ShapeChecker::check_work(const Op& op, const ElementwiseWork& work) {
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

}  // namespace ulysim::workload
