#include "sim/strategies/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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

std::vector<std::vector<BlockOf>> layers_of_stages(const OpGraph& graph) {
  std::map<std::pair<std::size_t, std::int32_t>, std::set<BlockOf>> stages;
  for (std::size_t role = 0; role < graph.roles.size(); ++role) {
    for (const Instance& instance : graph.roles[role].program) {
      if (graph.of(instance).kind == BlockKind::layer) {
        stages[{role, instance.virtual_stage}].insert({.role = role, .block = instance.block});
      }
    }
  }
  std::vector<std::vector<BlockOf>> out;
  out.reserve(stages.size());
  for (const auto& [stage, blocks] : stages) {
    out.emplace_back(blocks.begin(), blocks.end());
  }
  return out;
}

std::set<std::size_t> split_templates(OpGraph& graph, const std::set<BlockOf>& chosen, const std::string& suffix) {
  std::map<std::size_t, std::set<BlockOf>> moved;
  std::map<std::size_t, std::set<BlockOf>> all;
  for (std::size_t role = 0; role < graph.roles.size(); ++role) {
    for (const Instance& instance : graph.roles[role].program) {
      const BlockOf block{.role = role, .block = instance.block};
      const std::size_t own = instance.block_template.index();
      all[own].insert(block);
      if (chosen.count(block) != 0) {
        moved[own].insert(block);
      }
    }
  }
  std::set<std::size_t> out;
  for (const auto& [from, blocks] : moved) {
    if (blocks.size() == all[from].size()) {
      out.insert(from);
      continue;
    }
    BlockTemplate copy = graph.templates[from];
    copy.name += suffix;
    copy.instances = static_cast<std::int64_t>(blocks.size());
    graph.templates[from].instances -= copy.instances;
    graph.templates.push_back(std::move(copy));
    const TemplateId to(graph.templates.size() - 1);
    out.insert(to.index());
    for (std::size_t role = 0; role < graph.roles.size(); ++role) {
      for (Instance& instance : graph.roles[role].program) {
        if (instance.block_template.index() == from && blocks.count({.role = role, .block = instance.block}) != 0) {
          instance.block_template = to;
        }
      }
    }
  }
  return out;
}

std::string with_data(const char* axis, std::int64_t legal, std::int64_t data) {
  return data > 1 ? fmt::format("{} {} with data {}", axis, legal, data) : fmt::format("{} {}", axis, legal);
}

}  // namespace ulysim::strategies
