#include "calibration/cuda/sequence_attention.h"

#include <fmt/format.h>

#include <utility>

namespace ulysim::calibration::cuda {
namespace {

class ReferenceAttention final : public LocalAttention {
 public:
  explicit ReferenceAttention(Device& device) : device_(&device) {}

  void forward(const BlockShape& shape, const ForwardTensors& t) override {
    device_->launch(ReferenceForward{.shape = shape, .q = t.q, .k = t.k, .v = t.v, .out = t.out, .stats = t.stats},
                    Lane::compute);
  }

  void backward(const BlockShape& shape, const BackwardTensors& t) override {
    const std::int64_t bytes = 4 * shape.queries * shape.heads;
    if (delta_.bytes() < bytes) {
      device_->synchronize();  // The old buffer may still be read.
      delta_ = Buffer(*device_, bytes);
    }
    auto* const delta = delta_.as<float>();
    device_->launch(ReferenceDelta{.shape = shape, .out = t.out, .d_out = t.d_out, .delta = delta}, Lane::compute);
    const ReferenceInputs inputs{
        .shape = shape, .q = t.q, .k = t.k, .v = t.v, .d_out = t.d_out, .stats = t.stats, .delta = delta};
    device_->launch(ReferenceQueryGradient{.of = inputs, .dq = t.dq}, Lane::compute);
    device_->launch(ReferenceKeyGradient{.of = inputs, .dk = t.dk, .dv = t.dv}, Lane::compute);
  }

 private:
  Device* device_;
  Buffer delta_;
};

}  // namespace

std::string_view name_of(SequenceMethod method) {
  constexpr std::string_view kNames[] = {"ulysses", "ring", "gathered"};
  return kNames[static_cast<std::size_t>(method)];
}

std::optional<std::string> why_not(SequenceMethod method, const SequenceShape& shape, int world) {
  if (shape.heads % shape.kv_heads != 0) {
    return fmt::format("{} heads cannot share {} KV heads evenly", shape.heads, shape.kv_heads);
  }
  if (shape.head_dim % 8 != 0 || shape.head_dim > kMostHeadDim) {
    return fmt::format("a head size of {} is no multiple of 8 up to {}", shape.head_dim, kMostHeadDim);
  }
  const std::int64_t parts = method == SequenceMethod::ulysses ? world : 2 * std::int64_t{world};
  if (shape.tokens % parts != 0) {
    return fmt::format("{} tokens do not split into {} parts", shape.tokens, parts);
  }
  // Kernels count vectors of eight elements in 32 bits (element.h, Divider).
  constexpr std::int64_t kMostVectors = std::int64_t{1} << 31U;
  if (shape.tokens / world >= kMostVectors / (shape.heads * shape.head_dim / 8)) {
    return fmt::format("{} tokens on each of {} ranks are too many for one kernel", shape.tokens / world, world);
  }
  if (method == SequenceMethod::ulysses) {
    if (shape.heads % world != 0) {
      return fmt::format("{} heads do not split over {} ranks", shape.heads, world);
    }
    if (shape.kv_heads % world != 0 && world % shape.kv_heads != 0) {
      return fmt::format("{} KV heads neither split over {} ranks nor repeat evenly", shape.kv_heads, world);
    }
  }
  return std::nullopt;
}

std::unique_ptr<SequenceAttention> make_sequence_attention(SequenceMethod method, const SequenceShape& shape,
                                                           Group group) {
  switch (method) {
    case SequenceMethod::ulysses:
      return make_ulysses(shape, std::move(group));
    case SequenceMethod::ring:
      return make_ring(shape, std::move(group));
    case SequenceMethod::gathered:
      break;
  }
  return make_gathered(shape, std::move(group));
}

std::unique_ptr<LocalAttention> make_reference_attention(Device& device) {
  return std::make_unique<ReferenceAttention>(device);
}

}  // namespace ulysim::calibration::cuda
