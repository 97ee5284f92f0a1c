#include "calibration/cuda/power.h"

#include <dlfcn.h>

#include <string>

namespace ulysim::calibration::cuda {
namespace {

// NVML's interface (nvml.h of the CUDA toolkit's component cuda-nvml-dev), as far as it is used here: functions return
// 0 when they succeed; a clock is in MHz, power in milliwatts.
constexpr int kSuccess = 0;
constexpr int kMultiprocessorClock = 1;  // NVML_CLOCK_SM
using Init = int (*)();
using DeviceByBus = int (*)(const char* bus, void** device);
using ClockInfo = int (*)(void* device, int type, unsigned* megahertz);
using PowerUsage = int (*)(void* device, unsigned* milliwatts);

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

PowerReader::PowerReader(const GpuFacts& gpu) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) {
    return;
  }
  const auto init = symbol<Init>(library_, "nvmlInit_v2");
  const auto find = symbol<DeviceByBus>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || find == nullptr || init() != kSuccess || find(gpu.pci_bus.c_str(), &device_) != kSuccess) {
    device_ = nullptr;
  }
}

PowerReader::~PowerReader() {
  if (library_ != nullptr) {
    static_cast<void>(dlclose(library_));
  }
}

PowerState PowerReader::read() const {
  PowerState state;
  if (device_ == nullptr) {
    return state;
  }
  const auto clock = symbol<ClockInfo>(library_, "nvmlDeviceGetClockInfo");
  const auto power = symbol<PowerUsage>(library_, "nvmlDeviceGetPowerUsage");
  unsigned value = 0;
  if (clock != nullptr && clock(device_, kMultiprocessorClock, &value) == kSuccess) {
    state.clock_mhz = static_cast<double>(value);
  }
  if (power != nullptr && power(device_, &value) == kSuccess) {
    state.power_w = static_cast<double>(value) / 1000.0;
  }
  return state;
}

}  // namespace ulysim::calibration::cuda
