#include <fmt/format.h>

#include <string_view>

#include "calibration/commands.h"
#include "sim/base/format.h"

namespace ulysim::calibration {
namespace {

constexpr std::string_view kKinds[] = {"datasheet", "published", "measured", "assumed"};

std::string scalar(double value) {
  return fmt::format("{:.4g}", value);
}
std::string scalar(std::int64_t value) {
  return fmt::format("{}", value);
}
std::string scalar(Duration value) {
  return human(value);
}

template <class T>
void line(std::string& out, std::string_view name, const spec::Sourced<T>& item) {
  const std::string spread = item.spread ? fmt::format("±{:.1f}%", 100.0 * *item.spread) : "";
  out += fmt::format("  {:<22} {:>9} {:>7}  {:<9}  {}\n", name, scalar(item.value), spread,
                     kKinds[static_cast<std::size_t>(item.kind)], item.source);
}

}  // namespace

std::string show(const cost::KernelProfile& profile) {
  std::string out = fmt::format("{}: {}\n\ngemm\n", profile.name, profile.summary);
  const cost::GemmProfile& gemm = profile.gemm;
  line(out, "efficiency", gemm.efficiency);
  line(out, "sustained", gemm.sustained);
  line(out, "tile_m", gemm.tile_m);
  line(out, "tile_n", gemm.tile_n);
  line(out, "wave_quantisation", gemm.wave_quantisation);
  line(out, "k_overhead", gemm.k_overhead);
  line(out, "launch", gemm.launch);
  out += "\nattention\n";
  line(out, "sustained", profile.attention_sustained);
  for (const cost::AttentionProfile& entry : profile.attention) {
    out += fmt::format("\n{} {}\n", cost::name_of(entry.implementation), cost::name_of(entry.direction));
    line(out, "efficiency_64", entry.efficiency_64);
    line(out, "efficiency_128", entry.efficiency_128);
    line(out, "masked_factor", entry.masked_factor);
    line(out, "masked_keys", entry.masked_keys);
    line(out, "saturation_keys", entry.saturation_keys);
    line(out, "imbalance", entry.imbalance);
    line(out, "launch", entry.launch);
  }
  out += "\nmemory bound\n";
  line(out, "bandwidth_efficiency", profile.memory_bound.bandwidth_efficiency);
  line(out, "launch", profile.memory_bound.launch);
  return out;
}

}  // namespace ulysim::calibration
