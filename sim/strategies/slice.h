#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/workload/op_graph.h"

namespace ulysim::strategies {

/// The ops that attention alone is served by, and their copies for a part of the heads or tokens.

/// Positions in `body` of the ops that make the heads which `attention` reads, and of those that use the heads which it
/// writes: projections, rotations, exchanges. In program order.
[[nodiscard]] std::vector<std::size_t> makers_of_heads(const workload::BlockTemplate& block, const workload::Body& body,
                                                       std::size_t attention);
[[nodiscard]] std::vector<std::size_t> users_of_heads(const workload::BlockTemplate& block, const workload::Body& body,
                                                      std::size_t attention);

/// Whether a tensor is an activation that holds heads, of either kind.
[[nodiscard]] bool holds_heads(const workload::Tensor& tensor);
[[nodiscard]] bool holds(const workload::Tensor& tensor, workload::Dim heads);

/// Position of the attention call of `body`; its size when there is none.
[[nodiscard]] std::size_t find_attention(const workload::Body& body);

/// What of an op belongs to the query heads, or to the key/value heads: nothing, all of it, or its half where one
/// kernel does both (a rotation). `heads` is Dim::heads or Dim::kv_heads.
[[nodiscard]] std::vector<workload::Op> share_of(const workload::BlockTemplate& block, const workload::Op& op,
                                                 workload::Dim heads);

/// Names of the tensors of one part, by the whole tensor's id.
using Renamed = std::map<std::size_t, TensorId>;

/// `op` as part `part` of `loop`: what it writes with heads becomes a tensor of the part, remembered in `renamed`, and
/// what it reads of those is read there. `suffix` makes names of ops and tensors their own.
[[nodiscard]] workload::Op part_of(workload::BlockTemplate& block, workload::Op op, std::int32_t loop,
                                   std::int64_t part, const std::string& suffix, Renamed& renamed);

}  // namespace ulysim::strategies
