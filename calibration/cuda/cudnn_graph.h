#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibration/cuda/device.h"

namespace ulysim::calibration::cuda {

enum class PlanDirection : std::uint8_t { forward, backward };

/// The tensors that a caller gives to a plan, by the number under which cuDNN knows them.
enum class PlanTensor : std::int64_t { q = 1, k, v, out, stats, d_out, dq, dk, dv };

/// Memory that a graph wants beside the tensors and the workspace: intermediates that are not virtual.
struct PlanScratch {
  std::int64_t tensor{};
  std::int64_t bytes{};
  enum class Before : std::uint8_t { anything, zeros } before{};
};

/// A composite cuDNN graph of attention, finished but without a plan. The composite is used because the unified
/// operation of cuDNN 9 takes no causal mask, and its backward fits into no graph.
class AttentionGraph {
 public:
  /// `handle`: cudnnHandle_t, or nullptr to plan for a device that is not here.
  /// Throws std::runtime_error with cuDNN's own message.
  AttentionGraph(const BlockShape& shape, PlanDirection direction, void* handle);
  AttentionGraph(AttentionGraph&&) noexcept;
  AttentionGraph& operator=(AttentionGraph&&) noexcept;
  ~AttentionGraph();

  /// cudnnBackendDescriptor_t of the operation graph.
  [[nodiscard]] void* descriptor() const;
  [[nodiscard]] std::int64_t operations() const;
  [[nodiscard]] const std::vector<PlanScratch>& scratch() const;
  /// Values that travel with every execution, by tensor. Their addresses are stable.
  [[nodiscard]] std::vector<std::pair<std::int64_t, void*>> scalars() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ulysim::calibration::cuda
