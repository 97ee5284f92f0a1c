#pragma once

// A small machine and hand-made graphs for tests of the engine, with figures that make pencil arithmetic short:
// kernels take 1 ns per byte (or per attention pair), NVLink moves 1 byte in 10 ps, NICs and PCIe in 100 ps.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hw_models/cost/cost_model.h"
#include "hw_models/kernel/kernel.h"
#include "hw_models/spec/cluster.h"
#include "hw_models/topology/topology.h"
#include "sim/engine/engine.h"
#include "sim/workload/op_graph.h"
#include "sim/workload/unroll.h"

namespace ulysim::engine {

using workload::MeshAxis;

class OneNanosecondPerUnit final : public cost::CostModel {
 public:
  [[nodiscard]] Duration time(const kernel::Kernel& kernel) const override {
    if (const auto* bound = std::get_if<kernel::MemoryBound>(&kernel)) {
      return Duration(bound->traffic.value() * 1000);
    }
    return Duration(std::get<kernel::Attention>(kernel).pairs * 1000);
  }
};

inline spec::Cluster small_cluster(std::int64_t nodes, std::int64_t gpus_per_node) {
  spec::Cluster cluster;
  spec::Node& node = cluster.node;
  node.gpus = gpus_per_node;
  node.nvlink_bandwidth.value = Bandwidth(100e9);
  node.nics.value = gpus_per_node;
  node.nic_bandwidth.value = Bandwidth(10e9);
  node.pcie_bandwidth.value = Bandwidth(10e9);
  node.gpus_per_pcie_uplink.value = 2;
  node.pcie_uplink_bandwidth.value = Bandwidth(10e9);
  node.pageable_copy_efficiency.value = 0.5;
  node.host_memory_bandwidth.value = Bandwidth(100e9);
  for (spec::Transport* transport : {&node.nvlink, &node.network}) {
    transport->all_to_all_efficiency.value = 1.0;
    transport->ring_efficiency.value = 1.0;
    transport->p2p_efficiency.value = 1.0;
  }
  cluster.gpu.sms.value = 100;
  cluster.nodes = nodes;
  cluster.gpus = nodes * gpus_per_node;
  return cluster;
}

/// One template with a forward body, run once.
class GraphMaker {
 public:
  GraphMaker() {
    graph.templates.push_back({.name = "layer", .instances = 1});
    graph.roles.push_back({.program = {{.last_micro_batch = true}}});
  }

  workload::BlockTemplate& block() { return graph.templates.front(); }
  std::vector<workload::Op>& ops() { return block().body(workload::Phase::forward).ops; }

  TensorId tensor(std::int64_t bytes, workload::Space space = workload::Space::gpu) {
    return block().add({.name = "t" + std::to_string(block().tensors.size()),
                        .shape = {{.dim = workload::Dim::elements, .size = bytes}},
                        .element_bytes = 1,
                        .space = space});
  }
  /// Queries or keys of one head, the sequence split over the ring.
  TensorId sequence(workload::Dim heads, std::int64_t tokens, workload::Layout layout) {
    return block().add(
        {.name = "t" + std::to_string(block().tensors.size()),
         .shape = {{.dim = workload::Dim::batch},
                   {.dim = workload::Dim::tokens, .size = tokens, .split = {MeshAxis::ring}, .layout = layout},
                   {.dim = heads},
                   {.dim = workload::Dim::head_dim}},
         .element_bytes = 1});
  }

  /// References end with the next op.
  workload::Op& op(workload::Op op) {
    ops().push_back(std::move(op));
    return ops().back();
  }
  /// Takes `nanoseconds` on its stream.
  workload::Op& kernel(std::string name, std::int64_t nanoseconds,
                       workload::Stream stream = workload::Stream::compute) {
    const TensorId touched = tensor(nanoseconds);
    return op({.name = std::move(name),
               .work = workload::ElementwiseWork{.traffic = {{.tensor = touched, .bytes_per_element = 1.0}}},
               .writes = {touched},
               .stream = stream});
  }
  workload::Op& attention(std::string name, TensorId queries, TensorId keys, std::int64_t shift) {
    return op(
        {.name = std::move(name), .work = workload::AttentionWork{.key_shift = shift}, .reads = {queries, keys, keys}});
  }
  workload::Op& collective(std::string name, workload::CollectiveKind kind, workload::AxisSet axes, std::int64_t bytes,
                           workload::Stream stream) {
    const TensorId from = tensor(bytes);
    const TensorId to = tensor(bytes);
    return op({.name = std::move(name),
               .work = workload::CollectiveWork{.kind = kind, .axes = axes},
               .reads = {from},
               .writes = {to},
               .stream = stream});
  }
  workload::Op& copy(std::string name, std::int64_t bytes, workload::Stream stream) {
    const bool out = stream == workload::Stream::device_to_host;
    const TensorId from = tensor(bytes, out ? workload::Space::gpu : workload::Space::host);
    const TensorId to = tensor(bytes, out ? workload::Space::host : workload::Space::gpu);
    return op(
        {.name = std::move(name), .work = workload::CopyWork{}, .reads = {from}, .writes = {to}, .stream = stream});
  }
  workload::Op& host_work(std::string name, std::int64_t bytes, Duration fixed) {
    const TensorId touched = tensor(bytes, workload::Space::host);
    return op({.name = std::move(name),
               .work = workload::HostWork{.traffic = {{.tensor = touched, .bytes_per_element = 1.0}}, .fixed = fixed},
               .stream = workload::Stream::host_work});
  }

  workload::OpGraph graph;
};

/// Issue costs nothing and collectives take no SMs unless asked for.
inline results::Timeline play(const workload::OpGraph& graph, const spec::Cluster& cluster, HostCosts host = {},
                              FoldMode mode = FoldMode::folded) {
  const topology::Topology topology = topology::build(cluster);
  const OneNanosecondPerUnit cost;
  std::vector<workload::Schedule> schedules;
  for (std::size_t role = 0; role < graph.roles.size(); ++role) {
    schedules.push_back(workload::unroll(graph, role));
  }
  return simulate(graph, schedules, {.cluster = &cluster, .topology = &topology, .cost = &cost, .host = host},
                  {.fold = mode});
}

/// In nanoseconds; the tests' figures are whole ones.
inline std::int64_t begin_of(const results::Timeline& timeline, std::size_t op, std::size_t rank = 0) {
  return timeline.ranks[rank].spans[op].begin.value() / 1000;
}
inline std::int64_t end_of(const results::Timeline& timeline, std::size_t op, std::size_t rank = 0) {
  return timeline.ranks[rank].spans[op].end.value() / 1000;
}

}  // namespace ulysim::engine
