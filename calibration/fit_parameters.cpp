// What a fit found, as a list that text and JSON print.

#include <fmt/format.h>

#include <cmath>

#include "calibration/fit_report.h"
#include "calibration/samples/names.h"

namespace ulysim::calibration {
namespace {

constexpr double kMicro = 1e6;
constexpr double kGiga = 1e9;

std::string_view name_of_kind(spec::SourceKind kind) {
  constexpr std::string_view kKinds[] = {"datasheet", "published", "measured", "assumed"};
  return kKinds[static_cast<std::size_t>(kind)];
}

class List {
 public:
  explicit List(std::string part) : part_(std::move(part)) {}

  void add(const char* name, const spec::Sourced<double>& item, const char* unit = "") {
    push(name, item.value, unit, item);
  }
  void add(const char* name, const spec::Sourced<std::int64_t>& item) {
    push(name, static_cast<double>(item.value), "", item);
  }
  void add(const char* name, const spec::Sourced<Duration>& item) {
    push(name, seconds(item.value) * kMicro, "us", item);
  }
  void part(std::string part) { part_ = std::move(part); }
  [[nodiscard]] std::vector<Parameter> take() { return std::move(parameters_); }

 private:
  template <class T>
  void push(const char* name, double value, const char* unit, const spec::Sourced<T>& item) {
    parameters_.push_back({.part = part_,
                           .name = name,
                           .value = value,
                           .unit = unit,
                           .source = item.source,
                           .kind = std::string(name_of_kind(item.kind)),
                           .spread = item.spread});
  }

  std::string part_;
  std::vector<Parameter> parameters_;
};

std::string part_of(const CollectiveCurve& curve) {
  return fmt::format("{}{}{}", info_of(curve.collective).name,
                     curve.via == Via::library ? "" : fmt::format(" {}", name_of(curve.via)),
                     curve.fabric.empty() ? "" : fmt::format(" over {}", curve.fabric));
}

std::string size_of(double bytes) {
  constexpr double kKi = 1024.0;
  return bytes < kKi * kKi ? fmt::format("{:.0f} KiB", bytes / kKi) : fmt::format("{:.0f} MiB", bytes / kKi / kKi);
}

std::string segment_name(const CollectiveCurve::Segment& segment) {
  return segment.from > 0.0 ? fmt::format("bandwidth from {} on", size_of(segment.from)) : "bandwidth";
}

}  // namespace

std::vector<Parameter> parameters_of(const cost::KernelProfile& profile) {
  List list("gemm");
  const cost::GemmProfile& gemm = profile.gemm;
  list.add("efficiency", gemm.efficiency);
  list.add("sustained", gemm.sustained);
  list.add("tile_m", gemm.tile_m);
  list.add("tile_n", gemm.tile_n);
  list.add("wave_quantisation", gemm.wave_quantisation);
  list.add("k_overhead", gemm.k_overhead, "elements");
  list.add("launch", gemm.launch);
  list.part("attention");
  list.add("sustained", profile.attention_sustained);
  for (const cost::AttentionProfile& entry : profile.attention) {
    list.part(fmt::format("{} {}", cost::name_of(entry.implementation), cost::name_of(entry.direction)));
    list.add("efficiency_64", entry.efficiency_64);
    list.add("efficiency_128", entry.efficiency_128);
    list.add("masked_factor", entry.masked_factor);
    list.add("masked_keys", entry.masked_keys, "keys");
    list.add("saturation_keys", entry.saturation_keys, "keys");
    list.add("imbalance", entry.imbalance, "tiles");
    list.add("launch", entry.launch);
  }
  list.part("memory bound");
  list.add("bandwidth_efficiency", profile.memory_bound.bandwidth_efficiency);
  list.add("launch", profile.memory_bound.launch);
  return list.take();
}

std::vector<Parameter> parameters_of(std::span<const CollectiveCurve> curves, spec::SourceKind kind) {
  std::vector<Parameter> parameters;
  for (const CollectiveCurve& curve : curves) {
    const auto add = [&](std::string name, double value, const char* unit) {
      parameters.push_back({.part = part_of(curve),
                            .name = std::move(name),
                            .value = value,
                            .unit = unit,
                            .source = curve.source,
                            .kind = std::string(name_of_kind(kind))});
    };
    add("latency", curve.latency * kMicro, "us");
    add("latency of each further rank", curve.rank_latency * kMicro, "us");
    for (const CollectiveCurve::Segment& segment : curve.segments) {
      // A segment in which nothing grows has no bandwidth of its own.
      if (segment.seconds_per_byte > 0.0) {
        add(segment_name(segment), 1.0 / segment.seconds_per_byte / kGiga, "GB/s");
      }
    }
  }
  return parameters;
}

Covariance covariance_of(const CollectiveCurve& curve) {
  Covariance covariance{.part = part_of(curve),
                        .parameters = {"latency s", "latency of each further rank s"},
                        .values = curve.estimate.values,
                        .matrix = curve.estimate.covariance};
  for (const CollectiveCurve::Segment& segment : curve.segments) {
    covariance.parameters.push_back(fmt::format("1 / {}", segment_name(segment)));
  }
  return covariance;
}

}  // namespace ulysim::calibration
