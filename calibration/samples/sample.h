#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "calibration/samples/probe.h"

namespace ulysim::calibration {

/// How long the hardware was kept busy: a burst of milliseconds runs at clocks that a training step does not hold.
enum class Regime : std::uint8_t { burst, sustained };

/// One measurement, whatever its origin: a published table, somebody's log or trace, a run of ours.
struct Sample {
  Probe probe{};
  std::string gpu{};       ///< or processor; empty when the source does not name it
  std::int64_t ranks{1};   ///< that did the same at once, or took part
  std::string fabric{};    ///< what joins the ranks: "shared-memory", "NVSwitch NVLink4"; empty when not told
  std::string software{};  ///< program, driver and libraries with their versions
  double seconds{};        ///< median, or the mean that the source prints
  /// As the source prints it, rounded perhaps: bus bandwidth in GB/s of a collective, TFLOP/s of kernels.
  std::optional<double> printed_rate{};
  std::optional<double> spread{};  ///< relative, one sigma
  std::int64_t runs{1};            ///< that the median is of; 1 for one printed figure
  std::optional<Regime> regime{};
  std::optional<double> clock_mhz{};  ///< of the multiprocessors, read after the measurement
  std::optional<double> power_w{};
  std::string source{};  ///< who published or measured it
};

/// Bus bandwidth in GB/s of a collective, TFLOP/s of kernels that count FLOPs: as printed, else from the time. Absent
/// for copies and layers.
[[nodiscard]] std::optional<double> rate_of(const Sample& sample);

/// rate_of() in the unit that suits it: GB/s, TFLOP/s, or GFLOP/s below one of those.
struct ShownRate {
  double value{};
  std::string_view unit{};
};
[[nodiscard]] std::optional<ShownRate> shown_rate(const Sample& sample);

/// Whether the same was measured on the same hardware: not again.
[[nodiscard]] bool is_same_measurement(const Sample& a, const Sample& b);

}  // namespace ulysim::calibration
