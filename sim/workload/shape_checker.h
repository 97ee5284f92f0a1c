#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/workload/op_graph.h"

namespace ulysim::workload {

/// The axes over which `extent` is split.
[[nodiscard]] AxisSet axes_of(const Extent& extent);
/// As findings show it: heads=32/ulysses.
[[nodiscard]] std::string text(const Extent& extent);

/// Checks shapes, shardings, reads and writes of the ops of one template. A file for each kind of work that takes more
/// than a few lines.
class ShapeChecker {
 public:
  ShapeChecker(const OpGraph& graph, const BlockTemplate& block, std::vector<std::string>& findings);
  void run();

 private:
  const Tensor& at(TensorId id) const { return block_.tensor(id); }

  void find(const Op& op, const std::string& what);
  void check(const Op& op);
  void check_loops(const Body& body);
  /// A part stands within its loop.
  static bool is_part(const Body& body, const Op& op);
  void no_partial(const Op& op, TensorId id);
  void match(const Op& op, const Tensor& a, const Tensor& b, Dim dim);
  void check_work(const Op& op, const GemmWork& work);
  void check_work(const Op& op, const PipelineWork& work);
  void check_work(const Op& op, const CopyWork&);
  void check_work(const Op&, const HostWork&) {}

  void check_work(const Op& op, const AttentionWork& work);
  void check_heads(const Op& op, const Extent& q_heads, const Extent& k_heads);
  /// A key/value tensor of ring step s must come straight from the transfer of the tensor of step s−1, or hold all.
  void check_ring(const Op& op, const AttentionWork& work, TensorId id);
  /// With keys split over the ring, the calls of one pass together see every rank's keys exactly once.
  void check_ring_coverage(const Body& body);
  /// The parts of an attention call together do all of it: every part of the heads once, or every pair of chunks that
  /// the mask does not hide.
  void check_chunk_coverage(const Body& body);

  void check_work(const Op& op, const ElementwiseWork& work);
  void match_activations(const Op& op, const Tensor& a, const Tensor& b);
  void match_weights(const Op& op, const Tensor& a, const Tensor& b);
  /// The axes over which samples are split.
  AxisSet samples_cut(const Tensor& tensor) const;

  void check_work(const Op& op, const CollectiveWork& work);
  void check_collective(const Op& op, const CollectiveWork& work, const Tensor& in, const Tensor& out);

  const OpGraph& graph_;
  const BlockTemplate& block_;
  std::vector<std::string>& findings_;
  std::vector<bool> written_;
  std::map<std::size_t, const Op*> producer_;
  Phase phase_{Phase::forward};
  const Body* body_{};
};

}  // namespace ulysim::workload
