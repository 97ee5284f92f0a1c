#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/least_squares.h"
#include "calibration/samples/sample.h"

namespace ulysim::calibration {

/// Messages below are a matter of protocols and queues, not of links; neither fitted nor scored.
inline constexpr std::int64_t kSmallestCollective = 65536;

/// What travels over the link of the busiest rank: bytes times the bus factor of nccl-tests.
[[nodiscard]] double wire_bytes(const CollectiveProbe& probe, std::int64_t ranks);

/// How long one collective takes over one fabric, called in one way:
/// latency + rank_latency · (ranks − 1) + the time of the wire's bytes, a line of its own slope in each segment of
/// sizes. No parameter is below 0, so time grows with bytes and with ranks.
struct CollectiveCurve {
  struct Segment {
    double from{};              ///< wire bytes at which it starts
    double seconds_per_byte{};  ///< 1 / bus bandwidth within it
  };
  std::string fabric{};
  Collective collective{};
  Via via{Via::library};
  double latency{};       ///< seconds
  double rank_latency{};  ///< seconds for each rank beyond the first
  std::vector<Segment> segments{};
  Estimate estimate{};   ///< latency, rank latency, seconds of each segment per byte
  std::string source{};  ///< "fit of 28 samples: A; B"

  [[nodiscard]] double seconds(const CollectiveProbe& probe, std::int64_t ranks) const;
};

/// Least squares of relative errors over `samples` of one collective, with segments that start at `knots` (ascending
/// wire bytes; those outside of the samples are dropped). InputError without two sizes that tell a rate.
[[nodiscard]] CollectiveCurve fit_curve(const std::vector<const Sample*>& samples, std::span<const double> knots);

/// A curve for each fabric, collective and way to call it in the samples, where there are four sizes or more.
[[nodiscard]] std::vector<CollectiveCurve> fit_collectives(std::span<const Sample> samples);

/// By the curve that is the sample's; absent when there is none.
[[nodiscard]] std::optional<double> predicted_seconds(const Sample& sample, std::span<const CollectiveCurve> curves);

}  // namespace ulysim::calibration
