#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/op_graph.h"

namespace ulysim::strategies {

/// Small steps that several passes take.

/// Whether expert parallelism has placed this tensor: its experts, slots or summands go by the expert axes, which are
/// another cut through all ranks that hold samples.
[[nodiscard]] bool is_placed_by_expert(const workload::Tensor& tensor);

/// Splits dimension `dim` (batch or tokens) of every activation by `axis`, outermost, and makes the weight gradients
/// partial over it: each rank sees its part of the batch or sequence only. Slots of experts go with their tokens.
void split_samples(workload::OpGraph& graph, workload::Dim dim, workload::MeshAxis axis);

/// A copy of `tensor` under another name: non-persistent, no port.
[[nodiscard]] workload::Tensor like(const workload::Tensor& tensor, std::string name);

/// Takes `axis` off the split of `extent`.
void remove_split(workload::Extent& extent, workload::MeshAxis axis);

/// Replaces `from` by `to` in the reads (and traffic) of an op.
void replace_read(workload::Op& op, TensorId from, TensorId to);
/// The same in its writes (and traffic).
void replace_write(workload::Op& op, TensorId from, TensorId to);

[[nodiscard]] bool reads(const workload::Op& op, TensorId id);
[[nodiscard]] bool writes(const workload::Op& op, TensorId id);

[[nodiscard]] inline bool is_collective(const workload::Op& op) {
  return std::holds_alternative<workload::CollectiveWork>(op.work);
}
/// A trainable weight: sharded by ZeRO, gathered before use.
[[nodiscard]] inline bool is_parameter(const workload::Tensor& tensor) {
  return tensor.parameter;
}

/// A block of a role's chain.
struct BlockOf {
  std::size_t role{};
  std::int32_t block{};
  friend bool operator<(const BlockOf& a, const BlockOf& b) {
    return std::pair(a.role, a.block) < std::pair(b.role, b.block);
  }
};
/// The layers of each virtual stage of each role, in the order in which forward runs them.
[[nodiscard]] std::vector<std::vector<BlockOf>> layers_of_stages(const workload::OpGraph& graph);
/// Gives the chosen blocks templates of their own, named after the ones they had and `suffix`, so that a pass can
/// rewrite them apart from the others. Indices of the templates that hold nothing but chosen blocks.
std::set<std::size_t> split_templates(workload::OpGraph& graph, const std::set<BlockOf>& chosen,
                                      const std::string& suffix);

/// "2 with data 4" and the like: how a degree may be cut down to `legal` while the rest becomes data parallel.
[[nodiscard]] std::string with_data(const char* axis, std::int64_t legal, std::int64_t data);

}  // namespace ulysim::strategies
