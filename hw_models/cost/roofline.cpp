#include "hw_models/cost/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "hw_models/cost/cost_model.h"
#include "sim/base/check.h"

namespace ulysim::cost {
namespace {

constexpr std::int64_t kAttentionTile = 128;  // rows of one thread block's tile in FlashAttention-2 and -3

double as_double(std::int64_t value) {
  return static_cast<double>(value);
}

std::int64_t tiles(std::int64_t extent, std::int64_t tile) {
  return (extent + tile - 1) / tile;
}

double memory_seconds(const kernel::Kernel& kernel, const spec::Gpu& gpu, const KernelProfile& profile) {
  const spec::Sourced<double>& reached = gpu.bandwidth_efficiency.value_or(profile.memory_bound.bandwidth_efficiency);
  return as_double(traffic(kernel).value()) / (gpu.memory_bandwidth.value.value() * reached.value);
}

// Linear between the two measured head sizes. Below 64 the tensor cores idle in proportion; above 128 the rate of
// 128 is kept (FlashAttention-3 at 256 reaches 1.1 times that: not assumed elsewhere).
double head_dim_efficiency(std::int64_t head_dim, const AttentionProfile& p) {
  const double d = as_double(head_dim);
  if (d <= 64.0) {
    return p.efficiency_64.value * d / 64.0;
  }
  const double share = std::min((d - 64.0) / 64.0, 1.0);
  return p.efficiency_64.value + share * (p.efficiency_128.value - p.efficiency_64.value);
}

// Elements of the score rectangle that the kernel works on, as so many at the rate of a full one. Tiles that the
// diagonal crosses are worked whole: some masked keys for each row that it crosses, never more than the rectangle
// holds; a ring's unmasked rectangle has none. What is lost at any length (uneven rows) is linear in the worked share
// of the rectangle: a long causal square has 1/2. masked_factor >= 1/2 keeps the quotient, and so time, increasing.
double worked_pairs(const kernel::Attention& a, const AttentionProfile& p) {
  const double all = as_double(a.queries) * as_double(a.keys);
  const double crossed_rows = as_double(std::min(a.queries, a.keys));
  // Whole blocks of a sparse pattern hold their masked keys already.
  const double crossed = a.computed_pairs ? 0.0 : p.masked_keys.value * crossed_rows;
  const double worked = std::min(all, as_double(a.executed_pairs()) + crossed);
  const double share = std::clamp(2.0 * worked / all - 1.0, 0.0, 1.0);
  return worked / (p.masked_factor.value + share * (1.0 - p.masked_factor.value));
}

class Roofline final : public CostModel {
 public:
  Roofline(spec::Gpu gpu, KernelProfile profile)
      : gpu_(std::move(gpu)), profile_(std::move(profile)), what_("a kernel on " + gpu_.name) {}
  [[nodiscard]] Duration time(const kernel::Kernel& kernel) const override {
    return duration_from_seconds(kernel_seconds(kernel, gpu_, profile_), what_);
  }

 private:
  spec::Gpu gpu_;
  KernelProfile profile_;
  std::string what_;  ///< named by range errors; kept, because time() is hot
};

}  // namespace

bool has_rate(const spec::Gpu& gpu, kernel::Precision precision) {
  switch (precision) {
    case kernel::Precision::bf16:
      return true;
    case kernel::Precision::fp8:
      return gpu.fp8.has_value();
    case kernel::Precision::mxfp8:
      return gpu.fp8.has_value() && gpu.fp4.has_value();
    case kernel::Precision::nvfp4:
      return gpu.fp4.has_value();
  }
  return false;
}

FlopRate peak_rate(const spec::Gpu& gpu, kernel::Precision precision) {
  if (!has_rate(gpu, precision)) {
    throw RangeError(fmt::format("{} has no {} matrix units", gpu.name, name(precision)));
  }
  if (precision == kernel::Precision::bf16) {
    return gpu.bf16.value;
  }
  return (precision == kernel::Precision::nvfp4 ? gpu.fp4 : gpu.fp8)->value;
}

double gemm_seconds(const kernel::Gemm& g, const spec::Gpu& gpu, const KernelProfile& profile) {
  const GemmProfile& p = profile.gemm;
  const double launch = seconds(p.launch.value);
  if (g.m == 0 || g.n == 0 || g.k == 0 || g.batch == 0) {
    return launch;
  }
  const std::int64_t sms = gpu.sms.value;
  const std::int64_t count = g.batch * tiles(g.m, p.tile_m.value) * tiles(g.n, p.tile_n.value);
  const double quantised = as_double(tiles(count, sms));
  const double waves = as_double(count) / as_double(sms);
  const double machine_waves = waves + p.wave_quantisation.value * (quantised - waves);
  const double wave_flops = 2.0 * as_double(sms) * as_double(p.tile_m.value) * as_double(p.tile_n.value) *
                            (as_double(g.k) + p.k_overhead.value);
  const double of_precision = g.precision == kernel::Precision::bf16 ? 1.0 : gpu.low_precision_efficiency.value;
  const double sustained = p.sustained.value * gpu.sustained_efficiency.value;
  const double rate = peak_rate(gpu, g.precision).value() * p.efficiency.value * sustained * of_precision;
  return launch + std::max(machine_waves * wave_flops / rate, memory_seconds(g, gpu, profile));
}

double attention_seconds(const kernel::Attention& a, const spec::Gpu& gpu, const KernelProfile& profile) {
  const AttentionProfile& p = attention_profile(profile, a.implementation, a.direction);
  const double launch = as_double(launches(a)) * seconds(p.launch.value);
  if (a.pairs == 0 || a.sequences == 0 || a.heads == 0) {
    return launch;
  }
  // Thread blocks own query rows in the forward kernel and key rows in the backward one.
  const bool forward = a.direction == kernel::Direction::forward;
  const std::int64_t rows = forward ? a.queries : a.keys;
  const double columns = as_double(forward ? a.keys : a.queries);
  const double padded_rows = as_double(tiles(rows, kAttentionTile) * kAttentionTile);
  const double work =
      as_double(a.sequences) * as_double(a.heads) * (worked_pairs(a, p) + p.saturation_keys.value * padded_rows);
  // The last causal row sees all keys, which is twice the average; a window's rows see no more than that either.
  const double longest_row = std::min(columns, 2.0 * as_double(a.executed_pairs()) / as_double(rows));
  const double longest_tile = as_double(std::min(rows, kAttentionTile)) * (longest_row + p.saturation_keys.value);
  // List scheduling (Graham 1969): no schedule beats the longest tile or the average; greedy ones exceed the average
  // by at most one longest tile.
  const double sms = as_double(gpu.sms.value);
  const double busiest = std::max(longest_tile * sms, work + p.imbalance.value * longest_tile * sms);
  kernel::Attention pair = a;  // one pair of one head
  pair.sequences = pair.heads = pair.pairs = 1;
  pair.computed_pairs.reset();
  const double flops_per_pair = executed_flops(pair).value();
  const double rate = gpu.bf16.value.value() * head_dim_efficiency(a.head_dim, p) * profile.attention_sustained.value;
  return launch + std::max(busiest * flops_per_pair / rate, memory_seconds(a, gpu, profile));
}

double memory_bound_seconds(const kernel::MemoryBound& kernel, const spec::Gpu& gpu, const KernelProfile& profile) {
  return as_double(kernel.launches) * seconds(profile.memory_bound.launch.value) + memory_seconds(kernel, gpu, profile);
}

double kernel_seconds(const kernel::Kernel& kernel, const spec::Gpu& gpu, const KernelProfile& profile) {
  if (const auto* gemm = std::get_if<kernel::Gemm>(&kernel)) {
    return gemm_seconds(*gemm, gpu, profile);
  }
  if (const auto* attention = std::get_if<kernel::Attention>(&kernel)) {
    return attention_seconds(*attention, gpu, profile);
  }
  return memory_bound_seconds(std::get<kernel::MemoryBound>(kernel), gpu, profile);
}

std::unique_ptr<CostModel> make_cost_model(const spec::Gpu& gpu, const KernelProfile& profile) {
  return std::make_unique<Roofline>(gpu, profile);
}

}  // namespace ulysim::cost
