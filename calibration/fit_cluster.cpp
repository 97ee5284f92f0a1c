#include "calibration/fit_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calibration/fit.h"
#include "calibration/fit_parts.h"
#include "calibration/suite/probe_text.h"
#include "calibration/suite/statistics.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

constexpr std::int64_t kSmallestFitted = 65536;
// The simulator's elements have two bytes (bf16), the ranks' four (float32).
constexpr double kBytesPerByte = 0.5;
constexpr Duration kNoLatency(1000);  // the least that a catalogue takes

[[noreturn]] void refuse(const std::string& name, std::string message) {
  throw InputError({{.where = {.file = name}, .message = std::move(message)}});
}

std::string source_of(std::span<const ProbeSample> samples) {
  return fmt::format("{}, {} ranks, {}", samples.front().source, samples.front().ranks, samples.front().fabric);
}

template <class T>
spec::Sourced<T> measured(T value, const std::string& source) {
  return {.value = value, .source = source, .kind = spec::SourceKind::measured};
}

template <class T>
spec::Sourced<T> unused(T value) {
  return {.value = value, .source = "not measured; nothing of a host rank uses it", .kind = spec::SourceKind::assumed};
}

kernel::Attention attention_of(const AttentionProbe& p) {
  const std::int64_t all = p.tokens * p.tokens;
  return {.direction = p.direction,
          .heads = p.heads,
          .kv_heads = p.kv_heads,
          .head_dim = p.head_dim,
          .queries = p.tokens,
          .keys = p.tokens,
          .pairs = p.mask == Mask::full ? all : all - p.tokens * (p.tokens - 1) / 2};
}

/// The samples that fit_profile knows, and the copies.
struct Sorted {
  std::vector<Sample> kernels{};
  std::map<std::int64_t, double> copies{};  ///< bytes copied: seconds
};

Sorted sorted(std::span<const ProbeSample> samples, const std::string& name) {
  Sorted result;
  for (const ProbeSample& s : samples) {
    Sample sample{.gpu = name, .seconds = s.seconds, .spread = s.spread, .source = source_of(samples)};
    if (const auto* gemm = std::get_if<GemmProbe>(&s.probe)) {
      sample.kernels = {kernel::Gemm{.m = gemm->m, .n = gemm->n, .k = gemm->k}};
      result.kernels.push_back(std::move(sample));
    } else if (const auto* attention = std::get_if<AttentionProbe>(&s.probe)) {
      sample.kernels = {attention_of(*attention)};
      result.kernels.push_back(std::move(sample));
    } else if (const auto* copy = std::get_if<CopyProbe>(&s.probe)) {
      result.copies[copy->bytes] = s.seconds;
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
    flops = std::max(flops, flops_of(sample) / sample.seconds);
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

/// Time = latency + bytes / rate, by least squares of relative errors.
struct Line {
  double latency{};
  double rate{};
};

double bytes_on_the_link(const CollectiveProbe& probe, int ranks) {
  const auto bytes = static_cast<double>(probe.bytes);
  return probe.collective == Collective::send_recv ? bytes : bytes * (ranks - 1) / ranks;
}

Line fit_line(std::span<const ProbeSample> samples, const std::set<Collective>& of, const std::string& name) {
  double w = 0.0;
  double x = 0.0;
  double y = 0.0;
  double xx = 0.0;
  double xy = 0.0;
  std::size_t points = 0;
  for (const ProbeSample& s : samples) {
    const auto* probe = std::get_if<CollectiveProbe>(&s.probe);
    if (probe == nullptr || !of.contains(probe->collective) || probe->bytes < kSmallestFitted) {
      continue;
    }
    const double bytes = bytes_on_the_link(*probe, s.ranks);
    const double weight = 1.0 / (s.seconds * s.seconds);
    w += weight;
    x += weight * bytes;
    y += weight * s.seconds;
    xx += weight * bytes * bytes;
    xy += weight * bytes * s.seconds;
    ++points;
  }
  const double determinant = w * xx - x * x;
  const double slope = (w * xy - x * y) / determinant;
  if (points < 2 || determinant <= 0.0 || slope <= 0.0) {
    refuse(name, fmt::format("a fit needs collectives of two sizes above {} bytes that grow with their size",
                             kSmallestFitted));
  }
  return {.latency = std::max(0.0, (y - slope * x) / w), .rate = 1.0 / slope};
}

struct Links {
  Bandwidth rate{};
  spec::Transport transport{};
};

Links links_of(std::span<const ProbeSample> samples, const std::string& name, const std::string& source) {
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

spec::Node node_of(const Links& links, bool shared_memory, int ranks, const ClusterFit& fit,
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
          .nics = unused(std::int64_t{1} * (shared_memory ? ranks : 1)),
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

/// The fit of a catalogue GPU calls its samples published; these were measured here, for this profile.
void call_measured(cost::KernelProfile& profile) {
  const auto relabel = [](auto&... values) {
    ((values.kind = values.kind == spec::SourceKind::published ? spec::SourceKind::measured : values.kind), ...);
  };
  cost::GemmProfile& gemm = profile.gemm;
  relabel(gemm.efficiency, gemm.tile_m, gemm.tile_n, gemm.wave_quantisation, gemm.k_overhead, gemm.launch);
  for (cost::AttentionProfile& a : profile.attention) {
    relabel(a.efficiency_64, a.efficiency_128, a.masked_factor, a.masked_keys, a.saturation_keys, a.imbalance,
            a.launch);
  }
}

}  // namespace

ClusterFit fit_cluster(std::span<const ProbeSample> samples, const std::string& name) {
  if (samples.empty()) {
    refuse(name, "no samples");
  }
  const ProbeSample& first = samples.front();
  for (const ProbeSample& s : samples) {
    if (s.fabric != first.fabric || s.ranks != first.ranks) {
      refuse(name, fmt::format("samples of {} ranks over {} and of {} over {} in one file", first.ranks, first.fabric,
                               s.ranks, s.fabric));
    }
  }
  const std::string source = source_of(samples);
  const Sorted by_kind = sorted(samples, name);
  ClusterFit fit{.gpu = gpu_of(by_kind, name, source)};
  fit.profile = fit_profile(by_kind.kernels, fit.gpu);
  call_measured(fit.profile);
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
