#include "calibration/samples/probe.h"

#include <fmt/format.h>

#include <array>

#include "calibration/samples/names.h"
#include "calibration/samples/sample.h"

namespace ulysim::calibration {
namespace {

using kernel::Direction;

// bf16, read and written.
constexpr std::int64_t kCopiedElementBytes = 4;

kernel::Attention attention_of(const AttentionProbe& p, Direction direction) {
  return {.implementation = p.implementation,
          .direction = direction,
          .sequences = p.sequences,
          .heads = p.heads,
          .kv_heads = p.kv_heads,
          .head_dim = p.head_dim,
          .queries = p.queries,
          .keys = p.keys,
          .pairs = pairs_of(p.mask, p.queries, p.keys)};
}

/// A product of sizes, none of which may be 0.
bool is_small(std::initializer_list<std::int64_t> factors) {
  constexpr double kMost = 1e17;  // times 16 bytes, and the sums of a few such products, it is below 2^63
  double product = 1.0;
  for (const std::int64_t factor : factors) {
    product *= static_cast<double>(factor);
    if (factor < 1 || product > kMost) {
      return false;
    }
  }
  return true;
}

struct IsMeasurable {
  bool operator()(const GemmProbe& p) const {
    return is_small({p.batch, p.m, p.n}) && is_small({p.batch, p.n, p.k}) && is_small({p.batch, p.m, p.k});
  }
  bool operator()(const AttentionProbe& p) const {
    return is_small({p.queries, p.keys}) && is_small({p.sequences, p.heads, p.queries, p.head_dim}) &&
           is_small({p.sequences, p.kv_heads, p.keys, p.head_dim}) && (p.mask == Mask::full || p.keys >= p.queries);
  }
  bool operator()(const CopyProbe& p) const { return is_small({p.bytes}); }
  bool operator()(const CollectiveProbe& p) const { return p.bytes > 0; }
  bool operator()(const LayerProbe& p) const {
    return is_small({p.tokens, p.tokens}) && is_small({p.heads, p.tokens, p.head_dim}) &&
           is_small({p.kv_heads, p.tokens, p.head_dim});
  }
};

struct Kernels {
  std::vector<kernel::Kernel> operator()(const GemmProbe& p) const {
    return {kernel::Gemm{
        .m = p.m, .n = p.n, .k = p.k, .batch = p.batch, .precision = p.precision.value_or(kernel::Precision::bf16)}};
  }
  std::vector<kernel::Kernel> operator()(const AttentionProbe& p) const {
    std::vector<kernel::Kernel> kernels;
    if (p.pass != Pass::backward) {
      kernels.emplace_back(attention_of(p, Direction::forward));
    }
    if (p.pass == Pass::backward || p.pass == Pass::both) {
      kernels.emplace_back(attention_of(p, Direction::backward));
    }
    if (p.pass == Pass::forward_kv_write) {
      const std::int64_t elements = 2 * p.sequences * p.keys * p.kv_heads * p.head_dim;
      kernels.emplace_back(kernel::MemoryBound{.traffic = Bytes(kCopiedElementBytes * elements)});
    }
    return kernels;
  }
  std::vector<kernel::Kernel> operator()(const CopyProbe& p) const {
    if (p.path == CopyPath::host_to_device || p.path == CopyPath::device_to_host) {
      return {};
    }
    return {kernel::MemoryBound{.traffic = Bytes(2 * p.bytes)}};
  }
  std::vector<kernel::Kernel> operator()(const CollectiveProbe&) const { return {}; }
  std::vector<kernel::Kernel> operator()(const LayerProbe&) const { return {}; }
};

std::string heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim) {
  return fmt::format("{}:{} heads of {}", heads, kv_heads, head_dim);
}

struct Description {
  std::string operator()(const GemmProbe& p) const {
    return fmt::format("gemm {} x {} x {}{}", p.m, p.n, p.k, p.batch > 1 ? fmt::format(", {} times", p.batch) : "");
  }
  std::string operator()(const AttentionProbe& p) const {
    const std::string extent = p.queries == p.keys ? fmt::format("{} tokens", p.queries)
                                                   : fmt::format("{} queries by {} keys", p.queries, p.keys);
    return fmt::format("attention {} {}, {}{}, {}", name_of(p.pass), name_of(p.mask),
                       p.sequences > 1 ? fmt::format("{} of ", p.sequences) : "", extent,
                       heads_of(p.heads, p.kv_heads, p.head_dim));
  }
  std::string operator()(const CopyProbe& p) const { return fmt::format("copy {} {} B", name_of(p.path), p.bytes); }
  std::string operator()(const CollectiveProbe& p) const {
    return fmt::format("{}{}{} {} B", info_of(p.collective).name,
                       p.via == Via::library ? "" : fmt::format(" {}", name_of(p.via)), p.in_place ? " in place" : "",
                       p.bytes);
  }
  std::string operator()(const LayerProbe& p) const {
    return fmt::format("{} layer {} {}, {} tokens, {}", name_of(p.scheme), name_of(p.pass), name_of(p.mask), p.tokens,
                       heads_of(p.heads, p.kv_heads, p.head_dim));
  }
};

}  // namespace

std::int64_t pairs_of(Mask mask, std::int64_t queries, std::int64_t keys) {
  return queries * keys - (mask == Mask::causal ? queries * (queries - 1) / 2 : 0);
}

std::span<const std::string_view> probe_kinds() {
  static constexpr std::array<std::string_view, std::variant_size_v<Probe>> kKinds{"gemm", "attention", "copy",
                                                                                   "collective", "layer"};
  return kKinds;
}

std::string_view kind_of(const Probe& probe) {
  return probe_kinds()[probe.index()];
}

bool is_measurable(const Probe& probe) {
  return std::visit(IsMeasurable(), probe);
}

std::string describe(const Probe& probe) {
  return std::visit(Description(), probe);
}

std::vector<kernel::Kernel> kernels_of(const Probe& probe) {
  return std::visit(Kernels(), probe);
}

double flops_of(const Probe& probe) {
  double flops = 0.0;
  for (const kernel::Kernel& kernel : kernels_of(probe)) {
    flops += executed_flops(kernel).value();
  }
  return flops;
}

std::optional<double> rate_of(const Sample& sample) {
  constexpr double kGiga = 1e9;
  constexpr double kTera = 1e12;
  if (sample.printed_rate) {
    return sample.printed_rate;
  }
  if (const auto* run = std::get_if<CollectiveProbe>(&sample.probe)) {
    return bus_factor(info_of(run->collective), sample.ranks) * static_cast<double>(run->bytes) / sample.seconds /
           kGiga;
  }
  const double flops = flops_of(sample.probe);
  return flops > 0.0 ? std::optional(flops / sample.seconds / kTera) : std::nullopt;
}

std::optional<ShownRate> shown_rate(const Sample& sample) {
  constexpr double kKilo = 1e3;
  const auto rate = rate_of(sample);
  if (!rate) {
    return std::nullopt;
  }
  if (std::holds_alternative<CollectiveProbe>(sample.probe)) {
    return ShownRate{.value = *rate, .unit = "GB/s"};
  }
  return *rate >= 1.0 ? ShownRate{.value = *rate, .unit = "TFLOP/s"}
                      : ShownRate{.value = kKilo * *rate, .unit = "GFLOP/s"};
}

bool is_same_measurement(const Sample& a, const Sample& b) {
  return a.probe == b.probe && a.ranks == b.ranks && a.fabric == b.fabric && a.gpu == b.gpu;
}

}  // namespace ulysim::calibration
