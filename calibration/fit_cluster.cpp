#include "calibration/fit_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "calibration/fit_parts.h"
#include "calibration/samples/statistics.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

// The simulator's elements have two bytes (bf16), the ranks' four (float32).
constexpr double kBytesPerByte = 0.5;
constexpr Duration kNoLatency(1000);  // the least that a catalogue takes

[[noreturn]] void refuse(const std::string& name, std::string message) {
  throw InputError({{.where = {.file = name}, .message = std::move(message)}});
}

std::string source_of(std::span<const Sample> samples) {
  const Sample& first = samples.front();
  return fmt::format("{} on {}, {} ranks, {}", first.software, first.gpu, first.ranks, first.fabric);
}

template <class T>
spec::Sourced<T> measured(T value, const std::string& source) {
  return {.value = value, .source = source, .kind = spec::SourceKind::measured};
}

template <class T>
spec::Sourced<T> unused(T value) {
  return {.value = value, .source = "not measured; nothing of a host rank uses it", .kind = spec::SourceKind::assumed};
}

/// The samples that fit_profile knows, and the copies.
struct Sorted {
  std::vector<Sample> kernels{};
  std::map<std::int64_t, double> copies{};  ///< bytes copied: seconds
};

Sorted sorted(std::span<const Sample> samples, const std::string& name) {
  Sorted result;
  for (Sample sample : samples) {
    if (const auto* copy = std::get_if<CopyProbe>(&sample.probe)) {
      result.copies[copy->bytes] = sample.seconds;
    } else if (!kernels_of(sample.probe).empty()) {
      sample.gpu = name;
      sample.source = source_of(samples);
      result.kernels.push_back(std::move(sample));
    }
  }
  if (result.copies.empty() || result.kernels.empty()) {
    refuse(name, "a fit needs samples of copies, products and attention");
  }
  return result;
}

double copy_rate(const std::pair<const std::int64_t, double>& copy) {
  return 2.0 * static_cast<double>(copy.first) / copy.second;
}

spec::Gpu gpu_of(const Sorted& samples, const std::string& name, const std::string& source) {
  double flops = 0.0;
  for (const Sample& sample : samples.kernels) {
    flops = std::max(flops, flops_of(sample.probe) / sample.seconds);
  }
  double bandwidth = 0.0;
  for (const auto& copy : samples.copies) {
    bandwidth = std::max(bandwidth, copy_rate(copy));
  }
  return {.name = name,
          .summary = "One process on one core of the measured machine",
          .memory = unused(Bytes(std::int64_t{4} << 30)),
          .memory_bandwidth = measured(Bandwidth(std::round(kBytesPerByte * bandwidth)), "fastest copy: " + source),
          .sms = measured(std::int64_t{1}, "one core"),
          .bf16 = measured(FlopRate(std::round(flops)), "fastest kernel, float32: " + source),
          .kernel_profile = name};
}

/// Latency and rate, without segments: a link of the simulator has one of each.
struct Line {
  double latency{};
  double rate{};
};

Line fit_line(std::span<const Sample> samples, const std::set<Collective>& of, const std::string& name) {
  std::vector<const Sample*> own;
  for (const Sample& sample : samples) {
    const auto* probe = std::get_if<CollectiveProbe>(&sample.probe);
    if (probe != nullptr && of.contains(probe->collective) && probe->bytes >= kSmallestCollective) {
      own.push_back(&sample);
    }
  }
  if (own.empty()) {
    refuse(name, fmt::format("a fit needs collectives of {} bytes and more", kSmallestCollective));
  }
  const CollectiveCurve curve = fit_curve(own, {});
  return {.latency = curve.latency, .rate = 1.0 / curve.segments.front().seconds_per_byte};
}

struct Links {
  Bandwidth rate{};
  spec::Transport transport{};
};

Links links_of(std::span<const Sample> samples, const std::string& name, const std::string& source) {
  const Line all_to_all = fit_line(samples, {Collective::all_to_all}, name);
  const Line p2p = fit_line(samples, {Collective::send_recv}, name);
  const Line ring = fit_line(samples, {Collective::all_gather, Collective::reduce_scatter}, name);
  const double fastest = std::max({all_to_all.rate, p2p.rate, ring.rate});
  const double intercept = summary_of({all_to_all.latency, p2p.latency, ring.latency}).median;
  const Duration latency = std::max(kNoLatency, duration_from_seconds(intercept, "a latency"));
  const auto efficiency = [&](const Line& line, const char* what) {
    return measured(rounded(line.rate / fastest), fmt::format("{} of 64 KiB and more: {}", what, source));
  };
  return {.rate = Bandwidth(std::round(kBytesPerByte * fastest)),
          .transport = {.all_to_all_efficiency = efficiency(all_to_all, "all-to-all"),
                        .ring_efficiency = efficiency(ring, "all-gather and reduce-scatter"),
                        .p2p_efficiency = efficiency(p2p, "send_recv"),
                        .base_latency = measured(latency, "intercept of the same lines, median: " + source),
                        .step_latency = measured(kNoLatency, "part of the base latency: all steps are alike")}};
}

spec::Node node_of(const Links& links, bool shared_memory, std::int64_t ranks, const ClusterFit& fit,
                   const std::string& source) {
  const spec::Sourced<Bandwidth> rate = measured(links.rate, "fastest collective: " + source);
  const Bandwidth memory = fit.gpu.memory_bandwidth.value;
  return {.name = fit.gpu.name,
          .summary = shared_memory ? "The measured machine: ranks joined by shared memory"
                                   : "The measured machine: one rank a node, joined by TCP",
          .gpu_name = fit.gpu.name,
          .gpus = shared_memory ? ranks : 1,
          .nvlink_bandwidth = rate,
          .nvlink = links.transport,
          .nics = unused(shared_memory ? ranks : std::int64_t{1}),
          .nic_bandwidth = rate,
          .network = links.transport,
          .pcie_bandwidth = unused(memory),
          .gpus_per_pcie_uplink = unused(std::int64_t{1}),
          .pcie_uplink_bandwidth = unused(memory),
          .pageable_copy_efficiency = unused(1.0),
          .sockets = unused(std::int64_t{1}),
          .host_memory_bandwidth = unused(memory),
          .host_memory = unused(Bytes(std::int64_t{16} << 30)),
          .host_memory_reserved = unused(Bytes(std::int64_t{1} << 30))};
}

}  // namespace

ClusterFit fit_cluster(std::span<const Sample> samples, const std::string& name) {
  if (samples.empty()) {
    refuse(name, "no samples");
  }
  const Sample& first = samples.front();
  for (const Sample& s : samples) {
    if (s.fabric != first.fabric || s.ranks != first.ranks) {
      refuse(name, fmt::format("samples of {} ranks over {} and of {} over {} in one file", first.ranks, first.fabric,
                               s.ranks, s.fabric));
    }
  }
  const std::string source = source_of(samples);
  const Sorted by_kind = sorted(samples, name);
  ClusterFit fit{.gpu = gpu_of(by_kind, name, source)};
  ProfileFit kernels = fit_profile(by_kind.kernels, fit.gpu);
  fit.profile = std::move(kernels.profile);
  fit.covariances = std::move(kernels.covariances);
  call_measured(fit.profile.gemm);
  for (cost::AttentionProfile& entry : fit.profile.attention) {
    call_measured(entry);
  }
  fit.profile.gemm.sustained = measured(1.0, "measured in runs as long as a step: " + source);
  fit.profile.attention_sustained = fit.profile.gemm.sustained;
  // Of the largest copy: what a layer packs and unpacks does not stay in a cache either.
  const double share = kBytesPerByte * copy_rate(*by_kind.copies.rbegin()) / fit.gpu.memory_bandwidth.value.value();
  fit.profile.memory_bound.bandwidth_efficiency = measured(rounded(share), "largest copy over fastest: " + source);
  const bool shared_memory = first.fabric == "shared-memory";
  fit.nodes = shared_memory ? 1 : first.ranks;
  fit.node = node_of(links_of(samples, name, source), shared_memory, first.ranks, fit, source);
  return fit;
}

}  // namespace ulysim::calibration
