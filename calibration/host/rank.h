#pragma once

#include <vector>

#include "calibration/backend.h"
#include "calibration/host/reference.h"
#include "calibration/host/transport.h"

namespace ulysim::calibration::host {

/// What one rank does for a probe; all ranks do it at once.
class Rank {
 public:
  Rank(Transport& transport, Barrier barrier) : transport_(&transport), barrier_(barrier) {}
  /// Start and end of each timed repetition, alternating, on the monotonic clock; a barrier before each.
  [[nodiscard]] std::vector<double> measure(const Probe& probe, Repetitions repetitions);
  /// One norm per output.
  [[nodiscard]] std::vector<ErrorNorm> verify(const Probe& probe);

 private:
  Transport* transport_;
  Barrier barrier_;
};

}  // namespace ulysim::calibration::host
