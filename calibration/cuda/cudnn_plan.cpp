#include "calibration/cuda/cudnn_plan.h"

#include <cudnn_graph.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "calibration/cuda/cudnn_descriptor.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::optional<Descriptor> properties_of(const PlanTarget& target) {
  if (target.handle != nullptr) {
    return std::nullopt;
  }
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           static_cast<std::int64_t>(target.device_properties.size()), target.device_properties.data())
      .finish("the description of the device");
  return properties;
}

}  // namespace

struct AttentionPlan::Parts {
  AttentionGraph graph;
  std::optional<Descriptor> properties{};
  std::deque<Descriptor> heuristics{};
  std::deque<Descriptor> configurations{};
  std::optional<Descriptor> plan{};
  std::optional<std::int64_t> engine{};
  std::int64_t own_workspace{};

  // Fills in engine and plan if one of the proposals of this mode can be finished; returns why the last one could not.
  std::string try_mode(cudnnBackendHeurMode_t mode, const PlanTarget& target) {
    Descriptor& heuristic = heuristics.emplace_back(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set_descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor())
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (properties) {
      heuristic.set_descriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties->get());
    }
    heuristic.finish("asking for engines");
    const std::int64_t proposed =
        heuristic.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
    std::vector<void*> found;
    for (std::int64_t i = 0; i < proposed; ++i) {
      found.push_back(configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
    }
    const std::int64_t count = proposed == 0 ? 0
                                             : heuristic.read(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, proposed, found.data());
    std::string why = "no engine supports this shape";
    for (std::int64_t i = 0; i < count && !engine; ++i) {
      try {
        finish_plan(found[static_cast<std::size_t>(i)], target);
      } catch (const CudnnError& error) {
        why = error.what();
      }
    }
    return why;
  }

  void finish_plan(void* configuration, const PlanTarget& target) {
    Descriptor candidate(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    candidate.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (properties) {
      candidate.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties->get());
    } else {
      candidate.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
    }
    try {
      candidate.finish("a plan");
    } catch (const CudnnError& error) {
      if (properties && error.status() == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER) {
        engine = engine_of(configuration);
        return;
      }
      throw;
    }
    candidate.read(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &own_workspace);
    engine = engine_of(configuration);
    plan = std::move(candidate);
  }

  static std::int64_t engine_of(void* configuration) {
    const Descriptor found(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    void* pointer = found.get();
    std::int64_t count = 0;
    check_cudnn(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                         &count, &pointer),
                "the engine of a plan");
    std::int64_t index = 0;
    found.read(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    return index;
  }
};

AttentionPlan::AttentionPlan(const BlockShape& shape, PlanDirection direction, const PlanTarget& target) {
  if (shape.heads % shape.kv_heads != 0) {
    throw std::runtime_error("heads are no multiple of KV heads");
  }
  if (shape.mask == Mask::causal && shape.queries != shape.keys) {
    throw std::runtime_error("a causal block needs as many keys as queries");
  }
  parts_ = std::make_unique<Parts>(Parts{.graph = AttentionGraph(shape, direction, target.handle)});
  parts_->properties = properties_of(target);
  std::string reasons;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    reasons += reasons.empty() ? "" : "; then: ";
    try {
      reasons += parts_->try_mode(mode, target);
    } catch (const CudnnError& error) {
      reasons += error.what();
    }
    if (parts_->engine) {
      return;
    }
  }
  throw std::runtime_error(reasons);
}
AttentionPlan::AttentionPlan(AttentionPlan&&) noexcept = default;
AttentionPlan& AttentionPlan::operator=(AttentionPlan&&) noexcept = default;
AttentionPlan::~AttentionPlan() = default;

std::int64_t AttentionPlan::engine() const {
  return parts_->engine.value();
}
std::int64_t AttentionPlan::operations() const {
  return parts_->graph.operations();
}
std::int64_t AttentionPlan::workspace_bytes() const {
  std::int64_t bytes = aligned(parts_->own_workspace);
  for (const PlanScratch& scratch : parts_->graph.scratch()) {
    bytes += aligned(scratch.bytes);
  }
  return bytes;
}

std::vector<AttentionPlan::Zeroed> AttentionPlan::zeroed() const {
  std::vector<Zeroed> result;
  std::int64_t offset = aligned(parts_->own_workspace);
  for (const PlanScratch& scratch : parts_->graph.scratch()) {
    if (scratch.before == PlanScratch::Before::zeros) {
      result.push_back({.offset = offset, .bytes = scratch.bytes});
    }
    offset += aligned(scratch.bytes);
  }
  return result;
}

void AttentionPlan::run(void* handle, const std::vector<std::pair<PlanTensor, const void*>>& tensors,
                        void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [tensor, memory] : tensors) {
    ids.push_back(static_cast<std::int64_t>(tensor));
    // cuDNN's interface knows no const; inputs are not written.
    pointers.push_back(const_cast<void*>(memory));
  }
  for (const auto& [tensor, value] : parts_->graph.scalars()) {
    ids.push_back(tensor);
    pointers.push_back(value);
  }
  auto* at = static_cast<std::byte*>(workspace) + aligned(parts_->own_workspace);
  for (const PlanScratch& scratch : parts_->graph.scratch()) {
    ids.push_back(scratch.tensor);
    pointers.push_back(at);
    at += aligned(scratch.bytes);
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(ids.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data())
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
      .finish("the tensors of a plan");
  check_cudnn(cudnnBackendExecute(static_cast<cudnnHandle_t>(handle), parts_->plan->get(), pack.get()),
              "running attention");
}

}  // namespace ulysim::calibration::cuda
