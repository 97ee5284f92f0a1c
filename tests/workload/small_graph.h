#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/workload/op_graph.h"
#include "sim/workload/verify.h"

/// Graphs of a few ops, written by hand.
namespace ulysim::workload::small {

/// One block "work" with a forward body; tensors and ops are added by name.
class Graph {
 public:
  Graph() {
    graph.templates.push_back({.name = "work", .kind = BlockKind::layer, .instances = 1});
    graph.roles.push_back({.program = {{.block_template = TemplateId(0), .last_micro_batch = true}}});
  }

  TensorId tensor(const std::string& name, std::vector<Extent> shape = {{.dim = Dim::elements, .size = 8}}) {
    return block().add({.name = name, .shape = std::move(shape)});
  }
  /// A tensor that is there from the start.
  TensorId given(const std::string& name) {
    const TensorId id = tensor(name);
    block().tensor(id).persistent = true;
    return id;
  }
  Op& op(const std::string& name, Work work, std::vector<TensorId> reads, std::vector<TensorId> writes,
         Stream stream = Stream::compute, Phase phase = Phase::forward) {
    Body& body = block().body(phase);
    body.ops.push_back({.name = name,
                        .work = std::move(work),
                        .reads = std::move(reads),
                        .writes = std::move(writes),
                        .stream = stream});
    return body.ops.back();
  }
  Op& kernel(const std::string& name, std::vector<TensorId> reads, std::vector<TensorId> writes,
             Stream stream = Stream::compute) {
    return op(name, ElementwiseWork{}, std::move(reads), std::move(writes), stream);
  }

  BlockTemplate& block() { return graph.templates.back(); }
  Body& body(Phase phase = Phase::forward) { return block().body(phase); }

  /// What verify() finds, lifetimes placed first.
  std::vector<std::string> findings() {
    place_lifetimes(graph);
    return verify(graph);
  }

  OpGraph graph;
};

}  // namespace ulysim::workload::small
