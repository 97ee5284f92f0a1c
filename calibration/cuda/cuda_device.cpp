#include "calibration/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <utility>

#include "calibration/cuda/kernels.h"
#include "sim/base/check.h"

namespace ulysim::calibration::cuda {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // It is told now; a library that asks later would tell it again.
    throw WorldError(fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
  }
}

class OneGpu final : public CudaDevice {
 public:
  explicit OneGpu(GpuFacts facts) : facts_(std::move(facts)) {
    make_current();
    for (cudaStream_t& stream : streams_) {
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
      check(cudaEventCreateWithFlags(&orders_[static_cast<std::size_t>(&stream - streams_.data())],
                                     cudaEventDisableTiming),
            "creating an event");
    }
  }
  ~OneGpu() override {
    static_cast<void>(cudaSetDevice(facts_.index));
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      static_cast<void>(cudaEventDestroy(orders_[i]));
      static_cast<void>(cudaStreamDestroy(streams_[i]));
    }
  }

  [[nodiscard]] void* allocate(std::int64_t bytes) override {
    make_current();
    void* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "allocating GPU memory");
    return memory;
  }
  void release(void* memory) noexcept override {
    static_cast<void>(cudaSetDevice(facts_.index));
    static_cast<void>(cudaFree(memory));
  }
  void launch(const Work& work, Lane lane) override {
    make_current();
    check(static_cast<cudaError_t>(launch_kernel(work, native(lane))), "starting a kernel");
  }
  void copy(void* to, const void* from, std::int64_t bytes, Lane lane) override {
    make_current();
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, native(lane)), "copying");
  }
  void upload(void* to, const void* from, std::int64_t bytes) override { copy_now(to, from, bytes); }
  void download(void* to, const void* from, std::int64_t bytes) override { copy_now(to, from, bytes); }
  void order(Lane before, Lane after) override {
    make_current();
    // An event may be recorded again while streams still wait for its last record.
    const cudaEvent_t event = orders_[static_cast<std::size_t>(before)];
    check(cudaEventRecord(event, native(before)), "recording an event");
    check(cudaStreamWaitEvent(native(after), event, 0), "waiting for an event");
  }
  void synchronize() override {
    make_current();
    for (const cudaStream_t stream : streams_) {
      check(cudaStreamSynchronize(stream), "running what was given to the GPU");
    }
  }
  [[nodiscard]] void* stream(Lane lane) override { return native(lane); }

  [[nodiscard]] Moment make_moment() override {
    make_current();
    Moment moment;
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "creating an event");
    event_of(moment) = event;
    return moment;
  }
  void mark(Moment& moment) override {
    order(Lane::exchange, Lane::compute);
    check(cudaEventRecord(static_cast<cudaEvent_t>(event_of(moment)), native(Lane::compute)), "recording an event");
    order(Lane::compute, Lane::exchange);
  }
  void make_current() override { check(cudaSetDevice(facts_.index), "choosing a GPU"); }
  [[nodiscard]] const GpuFacts& facts() const override { return facts_; }
  [[nodiscard]] void* allocate_pinned(std::int64_t bytes) override {
    make_current();
    void* memory = nullptr;
    check(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "allocating page-locked memory");
    return memory;
  }
  void release_pinned(void* memory) noexcept override { static_cast<void>(cudaFreeHost(memory)); }
  [[nodiscard]] std::int64_t free_bytes() override {
    make_current();
    std::size_t free = 0;
    std::size_t all = 0;
    check(cudaMemGetInfo(&free, &all), "asking for free memory");
    return static_cast<std::int64_t>(free);
  }

 private:
  [[nodiscard]] cudaStream_t native(Lane lane) const { return streams_[static_cast<std::size_t>(lane)]; }
  // In a lane and waited for: a plain cudaMemcpy from pageable memory may return before the data have arrived, and
  // lanes do not wait for it.
  void copy_now(void* to, const void* from, std::int64_t bytes) {
    synchronize();
    copy(to, from, bytes, Lane::compute);
    synchronize();
  }

  GpuFacts facts_;
  std::array<cudaStream_t, 2> streams_{};
  std::array<cudaEvent_t, 2> orders_{};
};

}  // namespace

std::variant<std::vector<GpuFacts>, NoGpu> find_gpus() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    // 35 without a driver, 34 with the toolkit's stub, 100 with a driver but no device: all the same to a user.
    return NoGpu{fmt::format("no usable GPU: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error))};
  }
  std::vector<GpuFacts> gpus;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    GpuFacts gpu{.index = index};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess ||
        cudaDriverGetVersion(&gpu.driver_version) != cudaSuccess ||
        cudaRuntimeGetVersion(&gpu.runtime_version) != cudaSuccess) {
      return NoGpu{fmt::format("no usable GPU: number {} does not answer", index)};
    }
    gpu.name = properties.name;
    constexpr int kOldest = 8;
    if (properties.major < kOldest) {
      return NoGpu{fmt::format("no usable GPU: number {} ({}) has compute capability {}.{}, needed is {}.0 or later",
                               index, gpu.name, properties.major, properties.minor, kOldest)};
    }
    gpu.pci_bus =
        fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
    gpu.multiprocessors = properties.multiProcessorCount;
    gpu.compute_capability = properties.major * 10 + properties.minor;
    gpu.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    gpu.l2_bytes = properties.l2CacheSize;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

Moment::Moment() = default;
Moment::Moment(Moment&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
Moment& Moment::operator=(Moment&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}
Moment::~Moment() {
  if (event_ != nullptr) {
    static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(event_)));
  }
}

double Moment::seconds_since(const Moment& start) const {
  float milliseconds = 0.0F;
  check(cudaEventSynchronize(static_cast<cudaEvent_t>(event_)), "waiting for an event");
  check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(start.event_), static_cast<cudaEvent_t>(event_)),
        "reading the time of an event");
  constexpr double kMillisecond = 1e-3;
  return static_cast<double>(milliseconds) * kMillisecond;
}

std::unique_ptr<CudaDevice> make_cuda_device(const GpuFacts& facts) {
  return std::make_unique<OneGpu>(facts);
}

}  // namespace ulysim::calibration::cuda
