#pragma once

#include <cstdint>
#include <utility>

#include "calibration/cuda/work.h"

namespace ulysim::calibration::cuda {

/// Work on one lane runs in the order in which it was given; lanes overlap unless order() says otherwise.
enum class Lane : std::uint8_t { compute, exchange };

/// What the attention library needs of a processor with memory. A GPU (cuda_device.h), or the host in tests.
/// Contract: everything may return before it is done; errors throw, those of earlier work at the latest in
/// synchronize().
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  /// Aligned to 256 bytes; contents are arbitrary.
  [[nodiscard]] virtual void* allocate(std::int64_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void launch(const Work& work, Lane lane) = 0;
  /// Within the device's memory.
  virtual void copy(void* to, const void* from, std::int64_t bytes, Lane lane) = 0;
  /// From and to the host's memory; done when they return, after everything given before.
  virtual void upload(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void download(void* to, const void* from, std::int64_t bytes) = 0;
  /// What `after` is given from now on waits for what `before` was given so far.
  virtual void order(Lane before, Lane after) = 0;
  virtual void synchronize() = 0;
  /// cudaStream_t on a GPU, for libraries; nullptr on the host.
  [[nodiscard]] virtual void* stream(Lane lane) = 0;
};

/// Memory of a device, given back at the end of its life. The device must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, std::int64_t bytes) : device_(&device), memory_(device.allocate(bytes)), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)),
        memory_(std::exchange(other.memory_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (device_ != nullptr) {
      device_->release(memory_);
    }
  }

  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_);
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  Device* device_{};
  void* memory_{};
  std::int64_t bytes_{};
};

/// Queries [queries][heads][head_dim], keys and values [keys][kv_heads][head_dim], out and d_out like the queries,
/// stats [heads][queries]: log of the sum of exponentials. Backward takes the out and stats of the whole row, so that
/// blocks of keys may be done one by one.
struct ForwardTensors {
  const Bf16* q{};
  const Bf16* k{};
  const Bf16* v{};
  Bf16* out{};
  float* stats{};
};
struct BackwardTensors {
  const Bf16* q{};
  const Bf16* k{};
  const Bf16* v{};
  const Bf16* out{};
  const float* stats{};
  const Bf16* d_out{};
  Bf16* dq{};
  Bf16* dk{};
  Bf16* dv{};
};

/// Attention of one device over one block. Runs on Lane::compute.
/// Throws std::runtime_error for a shape that the implementation does not support.
class LocalAttention {
 public:
  LocalAttention() = default;
  LocalAttention(const LocalAttention&) = delete;
  LocalAttention& operator=(const LocalAttention&) = delete;
  virtual ~LocalAttention() = default;
  virtual void forward(const BlockShape& shape, const ForwardTensors& tensors) = 0;
  virtual void backward(const BlockShape& shape, const BackwardTensors& tensors) = 0;
};

}  // namespace ulysim::calibration::cuda
