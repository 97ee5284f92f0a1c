#include "calibration/cuda/cudnn_attention.h"

#include <cudnn_graph.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "calibration/cuda/cudnn_descriptor.h"
#include "calibration/cuda/cudnn_plan.h"

namespace ulysim::calibration::cuda {
namespace {

struct Known {
  BlockShape shape{};
  PlanDirection direction{};
  AttentionPlan plan;
};

class CudnnAttention final : public LocalAttention {
 public:
  explicit CudnnAttention(CudaDevice& device) : device_(&device) {
    device.make_current();
    check_cudnn(cudnnCreate(&handle_), "starting");
    check_cudnn(cudnnSetStream(handle_, static_cast<cudaStream_t>(device.stream(Lane::compute))), "setting the stream");
  }
  ~CudnnAttention() override {
    plans_.clear();  // They were made with the handle.
    cudnnDestroy(handle_);
  }

  void forward(const BlockShape& shape, const ForwardTensors& t) override {
    run(plan_for(shape, PlanDirection::forward), {{PlanTensor::q, t.q},
                                                  {PlanTensor::k, t.k},
                                                  {PlanTensor::v, t.v},
                                                  {PlanTensor::out, t.out},
                                                  {PlanTensor::stats, t.stats}});
  }
  void backward(const BlockShape& shape, const BackwardTensors& t) override {
    run(plan_for(shape, PlanDirection::backward), {{PlanTensor::q, t.q},
                                                   {PlanTensor::k, t.k},
                                                   {PlanTensor::v, t.v},
                                                   {PlanTensor::out, t.out},
                                                   {PlanTensor::stats, t.stats},
                                                   {PlanTensor::d_out, t.d_out},
                                                   {PlanTensor::dq, t.dq},
                                                   {PlanTensor::dk, t.dk},
                                                   {PlanTensor::dv, t.dv}});
  }

 private:
  const AttentionPlan& plan_for(const BlockShape& shape, PlanDirection direction) {
    for (const Known& known : plans_) {
      if (known.shape == shape && known.direction == direction) {
        return known.plan;
      }
    }
    device_->make_current();
    plans_.push_back(
        {.shape = shape, .direction = direction, .plan = AttentionPlan(shape, direction, {.handle = handle_})});
    return plans_.back().plan;
  }

  void run(const AttentionPlan& plan, const std::vector<std::pair<PlanTensor, const void*>>& tensors) {
    device_->make_current();
    if (workspace_.bytes() < plan.workspace_bytes()) {
      device_->synchronize();  // An earlier plan may still use the old one.
      workspace_ = Buffer();
      workspace_ = Buffer(*device_, plan.workspace_bytes());
    }
    for (const AttentionPlan::Zeroed& part : plan.zeroed()) {
      device_->launch(Fill{.to = workspace_.as<float>() + part.offset / 4, .value = 0.0F, .count = part.bytes / 4},
                      Lane::compute);
    }
    plan.run(handle_, tensors, workspace_.as<void>());
  }

  CudaDevice* device_;
  cudnnHandle_t handle_{};
  std::vector<Known> plans_;
  Buffer workspace_;
};

}  // namespace

std::unique_ptr<LocalAttention> make_cudnn_attention(CudaDevice& device) {
  return std::make_unique<CudnnAttention>(device);
}

std::string cudnn_version() {
  // 91900 is 9.19.0.
  const std::size_t number = cudnnGetVersion();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace ulysim::calibration::cuda
