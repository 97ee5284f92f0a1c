#include <fmt/format.h>

#include <memory>

#include "calibration/cuda/measure.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr std::int64_t kSizes[] = {1 << 20, 16 << 20, 256 << 20, 1 << 30};
constexpr std::string_view kGigabytes = "GB/s";

enum class Copy : std::uint8_t { engine, kernel, host_to_device, device_to_host };

/// Page-locked memory of the host; a Buffer cannot hold it.
class Pinned {
 public:
  Pinned(CudaDevice& device, std::int64_t bytes) : device_(&device), memory_(device.allocate_pinned(bytes)) {}
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { device_->release_pinned(memory_); }
  [[nodiscard]] void* get() const { return memory_; }

 private:
  CudaDevice* device_;
  void* memory_;
};

Iteration within_device(const Rig& rig, Copy copy, std::int64_t bytes) {
  auto from = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  auto to = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  return [&rig, copy, bytes, from, to](std::int64_t i) {
    for (std::size_t m = 0; m < rig.devices.size(); ++m) {
      if (copy == Copy::engine) {
        rig.devices[m]->copy(to->at<void>(m, i), from->at<void>(m, i), bytes, Lane::compute);
      } else {
        rig.devices[m]->launch(
            CopyVectors{.from = from->at<Vector16>(m, i), .to = to->at<Vector16>(m, i), .count = bytes / 16},
            Lane::compute);
      }
    }
  };
}

Iteration across_pci(const Rig& rig, Copy copy, std::int64_t bytes) {
  auto on_device = std::make_shared<RotatingBuffers>(rig, bytes, bytes);
  auto on_host = std::make_shared<std::vector<std::unique_ptr<Pinned>>>();
  for (CudaDevice* const device : rig.devices) {
    on_host->push_back(std::make_unique<Pinned>(*device, bytes));
  }
  return [&rig, copy, bytes, on_device, on_host](std::int64_t i) {
    for (std::size_t m = 0; m < rig.devices.size(); ++m) {
      void* const device = on_device->at<void>(m, i);
      void* const host = (*on_host)[m]->get();
      const bool up = copy == Copy::host_to_device;
      rig.devices[m]->copy(up ? device : host, up ? host : device, bytes, Lane::compute);
    }
  };
}

// Llama-3-8B's heads, as a rank of eight packs them.
template <class Items>
Iteration repack(const Rig& rig, std::int64_t tokens) {
  constexpr std::int64_t kHeads = 32;
  constexpr std::int64_t kVectors = 16;
  const std::int64_t bytes = tokens * kHeads * kVectors * 16;
  auto from = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  auto to = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  return [&rig, tokens, from, to](std::int64_t i) {
    for (std::size_t m = 0; m < rig.devices.size(); ++m) {
      rig.devices[m]->launch(Items{.from = from->at<Vector16>(m, i),
                                   .to = to->at<Vector16>(m, i),
                                   .tokens = tokens,
                                   .split = {kHeads, 8},
                                   .vectors = kVectors},
                             Lane::compute);
    }
  };
}

}  // namespace

void measure_copies(const Rig& rig, Recorder& recorder) {
  for (const std::int64_t bytes : kSizes) {
    const auto once = static_cast<double>(bytes);
    const auto amount = [](std::string_view group, double value) {
      return Amount{.group = group, .value = value, .unit = kGigabytes};
    };
    recorder.sample("copy", fmt::format("path=device by=engine bytes={}", bytes),
                    amount("copy by the engine, read + written", 2.0 * once),
                    [&] { return within_device(rig, Copy::engine, bytes); });
    recorder.sample("copy", fmt::format("path=device by=kernel bytes={}", bytes),
                    amount("copy by a kernel, read + written", 2.0 * once),
                    [&] { return within_device(rig, Copy::kernel, bytes); });
    recorder.sample("copy", fmt::format("path=host-to-device by=engine bytes={}", bytes), amount("host to GPU", once),
                    [&] { return across_pci(rig, Copy::host_to_device, bytes); });
    recorder.sample("copy", fmt::format("path=device-to-host by=engine bytes={}", bytes), amount("GPU to host", once),
                    [&] { return across_pci(rig, Copy::device_to_host, bytes); });
  }
  for (const std::int64_t tokens : {4096, 65536}) {
    // Read and written, bf16.
    const double bytes = 2.0 * static_cast<double>(tokens) * 32 * 128 * 2;
    recorder.sample("copy", fmt::format("path=device by=pack heads=32 peers=8 head_dim=128 tokens={}", tokens),
                    {.group = "pack heads, read + written", .value = bytes, .unit = kGigabytes},
                    [&] { return repack<PackHeads>(rig, tokens); });
    recorder.sample("copy", fmt::format("path=device by=unpack heads=32 peers=8 head_dim=128 tokens={}", tokens),
                    {.group = "unpack heads, read + written", .value = bytes, .unit = kGigabytes},
                    [&] { return repack<UnpackHeads>(rig, tokens); });
  }
}

}  // namespace ulysim::calibration::cuda
