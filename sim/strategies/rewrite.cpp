#include "sim/strategies/rewrite.h"

#include <fmt/format.h>

#include <algorithm>

namespace ulysim::strategies {

using namespace workload;

bool is_placed_by_expert(const Tensor& tensor) {
  return tensor.partial.contains(MeshAxis::expert_data) || tensor.partial.contains(MeshAxis::expert_shard) ||
         std::any_of(tensor.shape.begin(), tensor.shape.end(), [](const Extent& extent) {
           return extent.split_by(MeshAxis::expert) || extent.split_by(MeshAxis::expert_data) ||
                  extent.split_by(MeshAxis::expert_shard);
         });
}

void split_samples(OpGraph& graph, Dim dim, MeshAxis axis) {
  for (BlockTemplate& block : graph.templates) {
    for (Tensor& tensor : block.tensors) {
      Extent* extent = tensor.find(dim);
      if (extent == nullptr) {
        extent = tensor.find(Dim::slots);
      }
      if (extent != nullptr) {
        extent->split.insert(extent->split.begin(), axis);
      } else if (tensor.kind == MemoryKind::gradients) {
        tensor.partial.insert(axis);
      }
    }
  }
}

Tensor like(const Tensor& tensor, std::string name) {
  Tensor copy = tensor;
  copy.name = std::move(name);
  copy.port = Port::none;
  copy.persistent = false;
  copy.parameter = false;
  copy.shared = false;
  return copy;
}

void remove_split(Extent& extent, MeshAxis axis) {
  std::erase(extent.split, axis);
}

namespace {

void replace_traffic(Op& op, TensorId from, TensorId to) {
  if (auto* work = std::get_if<ElementwiseWork>(&op.work)) {
    for (Traffic& traffic : work->traffic) {
      traffic.tensor = traffic.tensor == from ? to : traffic.tensor;
    }
  }
}

}  // namespace

void replace_read(Op& op, TensorId from, TensorId to) {
  std::replace(op.reads.begin(), op.reads.end(), from, to);
  replace_traffic(op, from, to);
}

void replace_write(Op& op, TensorId from, TensorId to) {
  std::replace(op.writes.begin(), op.writes.end(), from, to);
  replace_traffic(op, from, to);
}

bool reads(const Op& op, TensorId id) {
  return std::find(op.reads.begin(), op.reads.end(), id) != op.reads.end();
}
bool writes(const Op& op, TensorId id) {
  return std::find(op.writes.begin(), op.writes.end(), id) != op.writes.end();
}

std::string with_data(const char* axis, std::int64_t legal, std::int64_t data) {
  return data > 1 ? fmt::format("{} {} with data {}", axis, legal, data) : fmt::format("{} {}", axis, legal);
}

}  // namespace ulysim::strategies
