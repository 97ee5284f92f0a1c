#include "sim/workload/dump.h"

#include <fmt/format.h>

#include <iterator>

namespace ulysim::workload {

namespace {

std::string names_of(const BlockTemplate& block, const std::vector<TensorId>& ids) {
  std::string text;
  for (const TensorId id : ids) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", block.tensor(id).name);
  }
  return text;
}

std::string dims(const std::vector<Dim>& list) {
  std::string text;
  for (const Dim dim : list) {
    text += fmt::format("{}{}", text.empty() ? "" : "·", name(dim));
  }
  return text;
}

std::string describe(const Work& work) {
  struct Visitor {
    std::string operator()(const GemmWork& w) const {
      return fmt::format(
          "gemm m={} n={} k={}{}{}", dims(w.m), dims(w.n), dims(w.k),
          w.groups.empty() ? "" : " for each of " + dims(w.groups),
          w.precision == kernel::Precision::bf16 ? "" : fmt::format(" in {}", kernel::name(w.precision)));
    }
    std::string operator()(const AttentionWork& w) const {
      return fmt::format("attention {} {} shift={}{}{}",
                         w.direction == kernel::Direction::forward ? "forward" : "backward", workload::describe(w.mask),
                         w.key_shift, w.gathered_keys ? " of gathered keys" : "",
                         w.chunks ? fmt::format(" chunk {} to keys of {}", w.chunks->query, w.chunks->key) : "");
    }
    std::string operator()(const ElementwiseWork& w) const {
      double bytes = 0;
      for (const Traffic& t : w.traffic) {
        bytes += t.bytes_per_element;
      }
      return fmt::format("elementwise {:g} B/element in {} launches", bytes, w.launches);
    }
    std::string operator()(const CollectiveWork& w) const {
      std::string text = fmt::format("{} {}", name(w.kind), to_string(w.axes));
      if (w.from && w.to) {
        text += fmt::format(" {}→{}", name(*w.from), name(*w.to));
      }
      return text;
    }
    std::string operator()(const PipelineWork& w) const {
      return fmt::format("{} role {} tag {}", w.side == PipelineWork::Side::send ? "send to" : "receive from",
                         w.peer_role, w.tag);
    }
    std::string operator()(const CopyWork& w) const {
      return w.buffer == CopyWork::Buffer::pinned ? "copy pinned" : "copy pageable";
    }
    std::string operator()(const HostWork& w) const { return fmt::format("host {} ps", w.fixed.value()); }
  };
  return std::visit(Visitor{}, work);
}

void dump_op(const BlockTemplate& block, const Body& body, const Op& op, std::string& out) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "    {:<24} {:<14} {} | {} -> {}", op.name, name(op.stream), describe(op.work),
                 names_of(block, op.reads), names_of(block, op.writes));
  if (op.loop >= 0) {
    const Loop& loop = body.loops[static_cast<std::size_t>(op.loop)];
    fmt::format_to(to, " loop {}×{}", loop.name, loop.trips);
    if (op.part) {
      fmt::format_to(to, " part {}{}", *op.part, op.repeats > 1 ? fmt::format(" and {} more", op.repeats - 1) : "");
    }
  }
  if (!op.allocs.empty()) {
    fmt::format_to(to, " +{}", names_of(block, op.allocs));
  }
  if (!op.frees.empty()) {
    fmt::format_to(to, " -{}", names_of(block, op.frees));
  }
  for (const OpId before : op.after) {
    fmt::format_to(to, " after {}", body.ops[before.index()].name);
  }
  out += op.acquire != CreditPool::none ? " acquire" : "";
  out += !op.release.empty() ? " release" : "";
  out += op.recomputed ? " recomputed" : "";
  out += op.when == When::last_micro_batch ? " last" : op.when == When::first_micro_batch ? " first" : "";
  out += op.drains ? " drains" : "";
  out += op.host_waits ? " host-waits" : "";
  out += "\n";
}

void dump_program(const OpGraph& graph, const Role& role, std::string& out) {
  fmt::format_to(std::back_inserter(out), "program of {}:\n", role.name);
  for (std::size_t i = 0; i < role.program.size();) {
    const Instance& first = role.program[i];
    std::size_t end = i + 1;
    while (end < role.program.size() && role.program[end].block_template == first.block_template &&
           role.program[end].phase == first.phase && role.program[end].micro_batch == first.micro_batch) {
      ++end;
    }
    fmt::format_to(std::back_inserter(out), "  micro-batch {} {} {} block {}", first.micro_batch, graph.of(first).name,
                   name(first.phase), first.block);
    if (end - i > 1) {
      fmt::format_to(std::back_inserter(out), "…{}", role.program[end - 1].block);
    }
    out += "\n";
    i = end;
  }
}

}  // namespace

std::string describe(const Tensor& tensor) {
  std::string text = "[";
  for (const Extent& extent : tensor.shape) {
    fmt::format_to(std::back_inserter(text), "{}{}={}", text.size() > 1 ? ", " : "", name(extent.dim), extent.size);
    if (extent.multiple != 1) {
      fmt::format_to(std::back_inserter(text), "↑{}", extent.multiple);
    }
    for (const MeshAxis axis : extent.split) {
      fmt::format_to(std::back_inserter(text), "/{}", name(axis));
    }
    if (extent.layout != Layout::contiguous) {
      fmt::format_to(std::back_inserter(text), " {}", name(extent.layout));
    }
  }
  fmt::format_to(std::back_inserter(text), "] {} B", tensor.element_bytes);
  if (tensor.block_elements != 1) {
    fmt::format_to(std::back_inserter(text), "/{}", tensor.block_elements);
  }
  if (!tensor.partial.empty()) {
    text += " partial" + to_string(tensor.partial);
  }
  return text;
}

std::string dump(const OpGraph& graph) {
  std::string out = "mesh";
  for (const MeshAxis axis : graph.mesh.placement) {
    if (axis == MeshAxis::pipeline && graph.mesh.size(axis) == 1) {
      continue;
    }
    fmt::format_to(std::back_inserter(out), " {}={}", name(axis), graph.mesh.size(axis));
  }
  if (graph.mesh.expert > 1) {
    fmt::format_to(std::back_inserter(out), " (expert={} expert_data={})", graph.mesh.expert,
                   graph.mesh.size(MeshAxis::expert_data));
  }
  if (graph.mesh.replicate > 1) {
    fmt::format_to(std::back_inserter(out), " (shard={} replicate={})", graph.mesh.size(MeshAxis::shard),
                   graph.mesh.replicate);
  }
  fmt::format_to(std::back_inserter(out), ", micro-batches {}\n", graph.micro_batches);
  for (const BlockTemplate& block : graph.templates) {
    fmt::format_to(std::back_inserter(out), "template {} ×{}\n", block.name, block.instances);
    for (const Tensor& tensor : block.tensors) {
      constexpr std::array<const char*, 3> kSpaces{"", " host", " nvme"};
      constexpr std::array<const char*, 7> kPorts{
          "", " input", " output", " grad_output", " grad_input", " tied_output", " tied_input"};
      fmt::format_to(std::back_inserter(out), "    {:<24} {} {}{}{}{}{}\n", tensor.name, describe(tensor),
                     name(tensor.kind), kPorts.at(static_cast<std::size_t>(tensor.port)),
                     tensor.persistent ? " persistent" : "", kSpaces.at(static_cast<std::size_t>(tensor.space)),
                     tensor.loop >= 0 ? " per-trip" : "");
    }
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
      const Body& body = block.body(phase);
      if (!body.ops.empty()) {
        fmt::format_to(std::back_inserter(out), "  {}\n", name(phase));
        for (const Op& op : body.ops) {
          dump_op(block, body, op, out);
        }
      }
    }
  }
  for (const Role& role : graph.roles) {
    dump_program(graph, role, out);
  }
  return out;
}

}  // namespace ulysim::workload
