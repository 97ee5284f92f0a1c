#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/samples/sample.h"

namespace ulysim::calibration {

struct Repetitions {
  int warm_up{};
  int timed{};
};

/// What the hardware said of itself after a measurement. Read, never set.
struct PowerState {
  std::optional<double> clock_mhz{};
  std::optional<double> power_w{};
};

/// A probe that this backend cannot run (a shape that a library refuses, memory too small) on any of its ranks, told in
/// a sentence. The suite leaves it out and goes on.
class ImpossibleProbe : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Something that can be measured: processes on this machine, GPUs.
/// Contract: `verify` before anything is timed; the same probe always does the same work on the same seeded inputs;
/// failures of a rank or a library end as WorldError with one sentence that names the rank.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  [[nodiscard]] virtual std::string fabric() const = 0;    ///< what joins the ranks: "shared-memory"
  [[nodiscard]] virtual std::string machine() const = 0;   ///< processor or GPU; no host name
  [[nodiscard]] virtual std::string software() const = 0;  ///< program, driver and libraries with their versions
  /// Largest ‖result − reference‖ / ‖reference‖ over all outputs and ranks; the reference runs in one process.
  [[nodiscard]] virtual double verify(const Probe& probe) = 0;
  /// Seconds of each timed repetition, the slowest rank's: on processes from the first start, after a barrier, to the
  /// last end; on GPUs of a batch of equal iterations, divided by their number.
  [[nodiscard]] virtual std::vector<double> measure(const Probe& probe, Repetitions repetitions) = 0;
  [[nodiscard]] virtual PowerState power_state() { return {}; }
};

}  // namespace ulysim::calibration
