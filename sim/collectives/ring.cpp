// Ring all-gather, reduce-scatter and all-reduce, as NCCL builds them.
//
// One ring over n positions: in each step every position sends one chunk of payload/n to its successor. After n−1 such
// steps every chunk has met every position (all-gather, reduce-scatter); all-reduce is a reduce-scatter and an
// all-gather, 2(n−1) steps. Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2), 2009.
//
// A group over m nodes with g GPUs on each would pass all its bytes through one NIC per node. NCCL therefore builds g
// rings (channels), each with 1/g of the payload: channel c enters every node at its GPU c, walks c, c+1, … , c−1
// (mod g) and leaves for the next node by NIC c, "crossNic = 0": a ring stays on its rail (NCCL_CROSS_NIC in NVIDIA's
// NCCL documentation; with PXN the last GPU, c−1, hands the data to GPU c over NVLink and that GPU's NIC sends it).
// So the inter-node hop is modelled from GPU c to the next node's GPU c. What this leaves out is PXN's own copy
// c−1 → c: one NVLink chunk in g, on links an order of magnitude faster than the NIC that bounds the step.
// In channel c then GPU c sends two chunks a step and GPU c−1 none; over the g channels every GPU sends exactly g
// chunks of payload/(n·g), g−1 over NVLink and one through its NIC, which is the volume that the contract asks for.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "sim/base/check.h"
#include "sim/collectives/algorithm.h"

namespace ulysim::collectives {
namespace {

/// Positions of a group, node by node (in order of first appearance), within a node by the GPU's local index, so that
/// column c of every node is on the same rail where the group allows it.
std::vector<std::vector<std::uint32_t>> by_node(const Group& group) {
  ULYSIM_CHECK(group.topology != nullptr, "a group of {} ranks without a topology", group.ranks.size());
  const topology::Topology& topology = *group.topology;
  std::vector<std::pair<std::size_t, std::size_t>> key(group.ranks.size());  // (order of the node, local index)
  std::vector<std::pair<std::size_t, std::size_t>> first_seen;               // (node, position), sorted by node
  for (std::size_t position = 0; position < group.ranks.size(); ++position) {
    first_seen.emplace_back(topology.node_of(group.ranks[position]), position);
  }
  std::sort(first_seen.begin(), first_seen.end());
  for (std::size_t k = 0; k < first_seen.size();) {
    const auto [node, first_position] = first_seen[k];
    for (; k < first_seen.size() && first_seen[k].first == node; ++k) {
      const std::size_t position = first_seen[k].second;
      key[position] = {first_position, topology.local_index(group.ranks[position])};
    }
  }
  std::vector<std::uint32_t> order(group.ranks.size());
  for (std::size_t position = 0; position < order.size(); ++position) {
    order[position] = static_cast<std::uint32_t>(position);
  }
  std::sort(order.begin(), order.end(), [&key](std::uint32_t a, std::uint32_t b) { return key[a] < key[b]; });
  std::vector<std::vector<std::uint32_t>> nodes;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || key[order[k]].first != key[order[k - 1]].first) {
      nodes.emplace_back();
    }
    nodes.back().push_back(order[k]);
  }
  return nodes;
}

std::vector<Transfer> single_ring(const std::vector<std::vector<std::uint32_t>>& nodes) {
  std::vector<std::uint32_t> order;
  for (const auto& node : nodes) {
    order.insert(order.end(), node.begin(), node.end());
  }
  std::vector<Transfer> transfers;
  for (std::size_t k = 0; k < order.size(); ++k) {
    transfers.push_back({.from = order[k], .to = order[(k + 1) % order.size()]});
  }
  return transfers;
}

/// All channels of one step together: the edge c → c+1 within a node belongs to every channel but the one that
/// begins at c+1 (there it would close the circle).
std::vector<Transfer> channel_rings(const std::vector<std::vector<std::uint32_t>>& nodes) {
  const std::size_t per_node = nodes.front().size();
  std::vector<Transfer> transfers;
  for (std::size_t m = 0; m < nodes.size(); ++m) {
    for (std::size_t c = 0; c < per_node; ++c) {
      transfers.push_back({.from = nodes[m][c],
                           .to = nodes[m][(c + 1) % per_node],
                           .chunks = static_cast<std::uint32_t>(per_node - 1)});
      transfers.push_back({.from = nodes[m][c], .to = nodes[(m + 1) % nodes.size()][c]});
    }
  }
  return transfers;
}

class Ring final : public Algorithm {
 public:
  [[nodiscard]] std::string name() const override { return "ring"; }
  [[nodiscard]] std::string summary() const override {
    return "ring all-gather, reduce-scatter and all-reduce; over nodes one channel per GPU of a node, each on its rail";
  }
  [[nodiscard]] bool supports(Kind kind, const Group& /*group*/) const override {
    return kind == Kind::all_gather || kind == Kind::reduce_scatter || kind == Kind::all_reduce;
  }
  [[nodiscard]] FlowProgram lower(Kind kind, const Group& group) const override {
    ULYSIM_CHECK(supports(kind, group), "ring does not do {}", collectives::name(kind));
    const std::size_t n = group.ranks.size();
    if (n < 2) {
      return {};
    }
    const auto nodes = by_node(group);
    const std::size_t per_node = nodes.front().size();
    const bool equal = std::all_of(nodes.begin(), nodes.end(), [&](const auto& x) { return x.size() == per_node; });
    // With one GPU a node, or one node, the channels are copies of one ring.
    const bool channels = equal && nodes.size() > 1 && per_node > 1;
    const std::size_t rounds = kind == Kind::all_reduce ? 2 * (n - 1) : n - 1;
    FlowProgram program{.divisor = static_cast<std::uint32_t>(channels ? n * per_node : n)};
    program.steps.push_back({.transfers = channels ? channel_rings(nodes) : single_ring(nodes),
                             .repeat = static_cast<std::uint32_t>(rounds)});
    return program;
  }
};

}  // namespace

std::unique_ptr<const Algorithm> make_ring() {
  return std::make_unique<Ring>();
}

}  // namespace ulysim::collectives
