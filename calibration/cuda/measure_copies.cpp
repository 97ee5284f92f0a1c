#include <cstring>
#include <memory>

#include "calibration/cuda/checked_numbers.h"
#include "calibration/cuda/measure.h"

namespace ulysim::calibration::cuda {
namespace {

// Llama-3-8B's heads in bf16, as a rank of eight packs them.
constexpr std::int64_t kHeads = 32;
constexpr std::int64_t kPeers = 8;
constexpr std::int64_t kVectors = 16;
constexpr std::int64_t kTokenBytes = kHeads * kVectors * 16;

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

Iteration within_device(const Rig& rig, CopyPath path, std::int64_t bytes) {
  auto from = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  auto to = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  return [&rig, path, bytes, from, to](std::int64_t i) {
    for (std::size_t m = 0; m < rig.devices.size(); ++m) {
      if (path == CopyPath::memory) {
        rig.devices[m]->copy(to->at<void>(m, i), from->at<void>(m, i), bytes, Lane::compute);
      } else {
        rig.devices[m]->launch(
            CopyVectors{.from = from->at<Vector16>(m, i), .to = to->at<Vector16>(m, i), .count = bytes / 16},
            Lane::compute);
      }
    }
  };
}

Iteration across_pci(const Rig& rig, CopyPath path, std::int64_t bytes) {
  auto on_device = std::make_shared<RotatingBuffers>(rig, bytes, bytes);
  auto on_host = std::make_shared<std::vector<std::unique_ptr<Pinned>>>();
  for (CudaDevice* const device : rig.devices) {
    on_host->push_back(std::make_unique<Pinned>(*device, bytes));
  }
  return [&rig, path, bytes, on_device, on_host](std::int64_t i) {
    for (std::size_t m = 0; m < rig.devices.size(); ++m) {
      void* const device = on_device->at<void>(m, i);
      void* const host = (*on_host)[m]->get();
      const bool up = path == CopyPath::host_to_device;
      rig.devices[m]->copy(up ? device : host, up ? host : device, bytes, Lane::compute);
    }
  };
}

template <class Items>
Items packing(const void* from, void* to, std::int64_t bytes) {
  return {.from = static_cast<const Vector16*>(from),
          .to = static_cast<Vector16*>(to),
          .tokens = bytes / kTokenBytes,
          .split = {kHeads, kPeers},
          .vectors = kVectors};
}

template <class Items>
Iteration repack(const Rig& rig, std::int64_t bytes) {
  auto from = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  auto to = std::make_shared<RotatingBuffers>(rig, bytes, 2 * bytes);
  return [&rig, bytes, from, to](std::int64_t i) {
    for (std::size_t m = 0; m < rig.devices.size(); ++m) {
      rig.devices[m]->launch(packing<Items>(from->at<void>(m, i), to->at<void>(m, i), bytes), Lane::compute);
    }
  };
}

/// What a copy should leave behind: kernels of ours run on the host as they do on the GPU.
std::vector<Vector16> expected(CopyPath path, const std::vector<Vector16>& from, std::int64_t bytes) {
  std::vector<Vector16> to = from;
  if (path == CopyPath::pack) {
    run_on_host(packing<PackHeads>(from.data(), to.data(), bytes));
  } else if (path == CopyPath::unpack) {
    run_on_host(packing<UnpackHeads>(from.data(), to.data(), bytes));
  }
  return to;
}

void run_once(CudaDevice& device, CopyPath path, const void* from, void* to, std::int64_t bytes) {
  switch (path) {
    case CopyPath::kernel:
      device.launch(
          CopyVectors{
              .from = static_cast<const Vector16*>(from), .to = static_cast<Vector16*>(to), .count = bytes / 16},
          Lane::compute);
      break;
    case CopyPath::pack:
      device.launch(packing<PackHeads>(from, to, bytes), Lane::compute);
      break;
    case CopyPath::unpack:
      device.launch(packing<UnpackHeads>(from, to, bytes), Lane::compute);
      break;
    default:
      device.copy(to, from, bytes, Lane::compute);
      break;
  }
}

}  // namespace

Iteration prepare(const Rig& rig, const CopyProbe& probe) {
  switch (probe.path) {
    case CopyPath::memory:
    case CopyPath::kernel:
      return within_device(rig, probe.path, probe.bytes);
    case CopyPath::pack:
      return repack<PackHeads>(rig, probe.bytes);
    case CopyPath::unpack:
      return repack<UnpackHeads>(rig, probe.bytes);
    case CopyPath::host_to_device:
    case CopyPath::device_to_host:
      break;
  }
  return across_pci(rig, probe.path, probe.bytes);
}

double verify(const Rig& rig, const CopyProbe& probe) {
  const std::vector<Vector16> values = numbered_vectors(probe.bytes / 16);
  const std::vector<Vector16> wanted = expected(probe.path, values, probe.bytes);
  for (CudaDevice* const device : rig.devices) {
    const Buffer from(*device, probe.bytes);
    const Buffer to(*device, probe.bytes);
    std::vector<Vector16> result(values.size());
    device->upload(from.as<void>(), values.data(), probe.bytes);
    device->upload(to.as<void>(), result.data(), probe.bytes);
    run_once(*device, probe.path, from.as<void>(), to.as<void>(), probe.bytes);
    device->synchronize();
    device->download(result.data(), to.as<void>(), probe.bytes);
    if (std::memcmp(result.data(), wanted.data(), result.size() * sizeof(Vector16)) != 0) {
      return 1.0;
    }
  }
  return 0.0;
}

}  // namespace ulysim::calibration::cuda
