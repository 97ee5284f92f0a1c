#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibration/cuda/cudnn_graph.h"

namespace ulysim::calibration::cuda {

/// For which device: that of a handle, or one that is described (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, JSON) and need
/// not be here. cuDNN then runs its own support checks and compiles; without a driver it cannot load what it compiled,
/// which counts as supported.
struct PlanTarget {
  void* handle{};                   ///< cudnnHandle_t
  std::string device_properties{};  ///< used without a handle
};

/// The first of cuDNN's proposals for a graph that it can finish.
class AttentionPlan {
 public:
  /// Throws std::runtime_error with cuDNN's reason when it supports no plan for this shape.
  AttentionPlan(const BlockShape& shape, PlanDirection direction, const PlanTarget& target);
  AttentionPlan(AttentionPlan&&) noexcept;
  AttentionPlan& operator=(AttentionPlan&&) noexcept;
  ~AttentionPlan();

  [[nodiscard]] std::int64_t engine() const;
  [[nodiscard]] std::int64_t operations() const;
  /// Of cuDNN and of the graph's intermediates, together. Of the latter alone where nothing could be loaded.
  [[nodiscard]] std::int64_t workspace_bytes() const;
  /// A part of the workspace that must hold zeros before every run.
  struct Zeroed {
    std::int64_t offset{};
    std::int64_t bytes{};
  };
  [[nodiscard]] std::vector<Zeroed> zeroed() const;
  /// In the stream of `handle`, which was the target. `workspace` has workspace_bytes().
  void run(void* handle, const std::vector<std::pair<PlanTensor, const void*>>& tensors, void* workspace) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ulysim::calibration::cuda
