#pragma once

#include <cstdint>

#include "sim/strategies/strategy.h"
#include "sim/workload/op_graph.h"

namespace ulysim::strategies {

/// What the sharding pass does to parameters and to gradients; its strategy (zero.cpp) puts them together.

/// Among whom the copies of a parameter, its gradient or its states are spread: `shard` cuts one copy into parts,
/// `replicas` hold the same part. Both without axes of size 1.
struct Sharing {
  workload::AxisSet shard{};
  workload::AxisSet replicas{};
  [[nodiscard]] workload::AxisSet all() const { return shard | replicas; }
};

/// The ranks that hold the same copy: data × sequence, as DeepSpeed does (engine.py, seq_data_parallel_group). Experts
/// that expert parallelism has placed are the same only across expert groups (DeepSpeed utils/groups.py, expert data
/// parallel group). With replicas, the ranks of a shard group, those that stand nearest.
[[nodiscard]] Sharing sharing_of(const workload::Mesh& mesh, const workload::Tensor& tensor);

/// Cuts the first dimension of a weight over `axes`; which one does not matter to its bytes.
void shard(workload::Tensor& tensor, workload::AxisSet axes);

/// Whether weights are cut between steps: from stage 3 on, and wherever the optimizer updates the parameter itself, so
/// that sharded states are sharded parameters (FSDP's reshard_after_forward=False is stage 2).
[[nodiscard]] bool cuts_parameters(const PlanContext& context);

/// Cuts the parameters of a block, over the threshold, and gathers them before their readers.
void shard_parameters(const PlanContext& context, const workload::OpGraph& graph, workload::BlockTemplate& block);

/// Stages 1 and 2 with overlapped gathers: each block fetches its updated weights in the first forward pass.
void gather_updated_in_forward(const workload::OpGraph& graph, workload::BlockTemplate& block);

/// Tells partial sums over the ranks that hold samples by shard groups and replicas, where there are replicas.
void name_replicas(const workload::Mesh& mesh, workload::BlockTemplate& block);

/// Reduces the gradients of a block where they are accumulated; gives how many elements at most are so reduced between
/// two kernels.
std::int64_t reduce_gradients(const PlanContext& context, const workload::OpGraph& graph,
                              workload::BlockTemplate& block);

/// Stages 0 and 1 without overlap: all gradients are reduced between the last backward pass and the optimizer.
void reduce_before_update(const PlanContext& context, workload::OpGraph& graph);

/// Whether that is so.
[[nodiscard]] bool reduces_before_update(const PlanContext& context);

/// Gradients that are reduced together, of one rank, in elements: a unit where units are reduced whole, else the
/// profile's bucket; never more than what of `graph` is trained.
[[nodiscard]] std::int64_t reduce_bucket(const PlanContext& context, const workload::OpGraph& graph);

/// Bytes per element of a gradient as it travels.
[[nodiscard]] std::int64_t gradient_wire_bytes(const PlanContext& context);

}  // namespace ulysim::strategies
