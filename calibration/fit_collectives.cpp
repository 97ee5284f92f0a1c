#include "calibration/fit_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

// NCCL changes protocol and algorithm somewhere in each of these (LL, LL128, Simple; NVLS from 2 MiB), a host's memory
// its cache level.
constexpr double kKnots[] = {1048576.0, 8388608.0, 67108864.0};
constexpr std::size_t kSizesEnough = 4;

const CollectiveProbe& run_of(const Sample& sample) {
  return std::get<CollectiveProbe>(sample.probe);
}

/// How many of a message's bytes lie in the segment between two sizes.
double share(double bytes, double from, double to) {
  return std::clamp(bytes, from, to) - from;
}

std::vector<double> starts_of(const std::vector<const Sample*>& samples, std::span<const double> knots) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (const Sample* sample : samples) {
    const double bytes = wire_bytes(run_of(*sample), sample->ranks);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  std::vector<double> starts{0.0};
  std::copy_if(knots.begin(), knots.end(), std::back_inserter(starts),
               [&](double knot) { return least < knot && knot < most; });
  return starts;
}

}  // namespace

double wire_bytes(const CollectiveProbe& probe, std::int64_t ranks) {
  return static_cast<double>(probe.bytes) * bus_factor(info_of(probe.collective), ranks);
}

double CollectiveCurve::seconds(const CollectiveProbe& probe, std::int64_t ranks) const {
  const double bytes = wire_bytes(probe, ranks);
  double total = latency + rank_latency * static_cast<double>(ranks - 1);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const double end = i + 1 < segments.size() ? segments[i + 1].from : std::numeric_limits<double>::infinity();
    total += segments[i].seconds_per_byte * share(bytes, segments[i].from, end);
  }
  return total;
}

CollectiveCurve fit_curve(const std::vector<const Sample*>& samples, std::span<const double> knots) {
  std::set<std::int64_t> sizes;
  std::set<std::int64_t> ranks;
  std::set<std::string> sources;
  for (const Sample* sample : samples) {
    sources.insert(sample->source);
    sizes.insert(run_of(*sample).bytes);
    ranks.insert(sample->ranks);
  }
  if (sizes.size() < 2) {
    throw InputError(
        {{.where = {.file = "samples"},
          .message = fmt::format("a fit needs collectives of two sizes of {} bytes or more", kSmallestCollective)}});
  }
  const std::vector<double> starts = starts_of(samples, knots);
  std::vector<LinearRow> rows;
  for (const Sample* sample : samples) {
    // One number of ranks tells nothing of what a further rank costs.
    LinearRow row{.features = {1.0, ranks.size() > 1 ? static_cast<double>(sample->ranks - 1) : 0.0},
                  .target = sample->seconds};
    const double bytes = wire_bytes(run_of(*sample), sample->ranks);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const double end = i + 1 < starts.size() ? starts[i + 1] : std::numeric_limits<double>::infinity();
      row.features.push_back(share(bytes, starts[i], end));
    }
    rows.push_back(std::move(row));
  }
  const Sample& first = *samples.front();
  CollectiveCurve curve{.fabric = first.fabric,
                        .collective = run_of(first).collective,
                        .via = run_of(first).via,
                        .estimate = non_negative_least_squares(rows),
                        .source = fmt::format("fit of {} samples: {}", samples.size(), fmt::join(sources, "; "))};
  curve.latency = curve.estimate.values[0];
  curve.rank_latency = curve.estimate.values[1];
  for (std::size_t i = 0; i < starts.size(); ++i) {
    curve.segments.push_back({.from = starts[i], .seconds_per_byte = curve.estimate.values[2 + i]});
  }
  if (curve.segments.back().seconds_per_byte <= 0.0) {
    throw InputError(
        {{.where = {.file = "samples"},
          .message = fmt::format("{}: the times do not grow with the sizes", info_of(curve.collective).name)}});
  }
  return curve;
}

std::vector<CollectiveCurve> fit_collectives(std::span<const Sample> samples) {
  std::map<std::tuple<std::string, Collective, Via>, std::vector<const Sample*>> sorted;
  for (const Sample& sample : samples) {
    const auto* run = std::get_if<CollectiveProbe>(&sample.probe);
    if (run != nullptr && run->bytes >= kSmallestCollective) {
      sorted[{sample.fabric, run->collective, run->via}].push_back(&sample);
    }
  }
  std::vector<CollectiveCurve> curves;
  for (const auto& [key, own] : sorted) {
    std::set<std::int64_t> sizes;
    for (const Sample* sample : own) {
      sizes.insert(run_of(*sample).bytes);
    }
    if (sizes.size() >= kSizesEnough) {
      curves.push_back(fit_curve(own, kKnots));
    }
  }
  return curves;
}

std::optional<double> predicted_seconds(const Sample& sample, std::span<const CollectiveCurve> curves) {
  const auto* run = std::get_if<CollectiveProbe>(&sample.probe);
  if (run == nullptr || run->bytes < kSmallestCollective) {
    return std::nullopt;
  }
  const auto found = std::find_if(curves.begin(), curves.end(), [&](const CollectiveCurve& curve) {
    return curve.fabric == sample.fabric && curve.collective == run->collective && curve.via == run->via;
  });
  return found == curves.end() ? std::nullopt : std::optional(found->seconds(*run, sample.ranks));
}

}  // namespace ulysim::calibration
