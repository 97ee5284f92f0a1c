#pragma once

#include <memory>

#include "calibration/cuda/device.h"

namespace ulysim::calibration::cuda {

/// A Device that runs every item of every Work in a loop on the host. Fresh memory is filled with not-a-number bits, so
/// that reading what nobody wrote shows.
[[nodiscard]] std::unique_ptr<Device> make_host_device();

}  // namespace ulysim::calibration::cuda
