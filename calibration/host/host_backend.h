#pragma once

#include <memory>

#include "calibration/backend.h"
#include "calibration/host/processes.h"

namespace ulysim::calibration::host {

/// Ranks are processes of this machine; float32 kernels on one core each.
[[nodiscard]] std::unique_ptr<Backend> make_host_backend(const HostOptions& options);

}  // namespace ulysim::calibration::host
