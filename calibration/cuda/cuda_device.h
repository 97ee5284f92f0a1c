#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "calibration/cuda/device.h"

namespace ulysim::calibration::cuda {

struct GpuFacts {
  int index{};
  std::string name{};
  std::string pci_bus{};  ///< "0000:3b:00.0"
  int multiprocessors{};
  int compute_capability{};  ///< 90 for 9.0
  std::int64_t memory_bytes{};
  std::int64_t l2_bytes{};
  int driver_version{};
  int runtime_version{};
};

struct NoGpu {
  std::string why{};  ///< one sentence
};

/// The usable GPUs of this machine, or why there are none. Never throws.
[[nodiscard]] std::variant<std::vector<GpuFacts>, NoGpu> find_gpus();

/// A moment on a device's lanes.
class Moment {
 public:
  Moment();
  Moment(Moment&& other) noexcept;
  Moment& operator=(Moment&& other) noexcept;
  ~Moment();
  /// Seconds between two moments that have passed, on the same device.
  [[nodiscard]] double seconds_since(const Moment& start) const;

 private:
  friend class CudaDevice;
  void* event_{};
};

/// A Device of this machine, and what timing needs beyond it. Every call makes the GPU current.
/// Throws WorldError for whatever CUDA reports, with its name.
class CudaDevice : public Device {
 public:
  /// After everything given to either lane, and before everything given to either lane later.
  virtual void mark(Moment& moment) = 0;
  /// A moment that can be marked on this device.
  [[nodiscard]] virtual Moment make_moment() = 0;
  virtual void make_current() = 0;
  [[nodiscard]] virtual const GpuFacts& facts() const = 0;
  /// Page-locked memory of the host, given back with release_pinned.
  [[nodiscard]] virtual void* allocate_pinned(std::int64_t bytes) = 0;
  virtual void release_pinned(void* memory) noexcept = 0;
  [[nodiscard]] virtual std::int64_t free_bytes() = 0;

 protected:
  static void*& event_of(Moment& moment) { return moment.event_; }
};

[[nodiscard]] std::unique_ptr<CudaDevice> make_cuda_device(const GpuFacts& facts);

}  // namespace ulysim::calibration::cuda
