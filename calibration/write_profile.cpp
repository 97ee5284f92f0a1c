#include "calibration/write_profile.h"

#include <fmt/format.h>

#include <string_view>

#include "sim/base/format.h"

namespace ulysim::calibration {
namespace {

std::string_view name_of(spec::SourceKind kind) {
  switch (kind) {
    case spec::SourceKind::datasheet:
      return "datasheet";
    case spec::SourceKind::published:
      return "published";
    case spec::SourceKind::measured:
      return "measured";
    case spec::SourceKind::assumed:
      return "assumed";
  }
  return "assumed";
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result + '"';
}

std::string scalar(double value) {
  return fmt::format("{}", value);
}
std::string scalar(std::int64_t value) {
  return fmt::format("{}", value);
}
std::string scalar(Duration value) {
  return exact(value);
}

template <class T>
void write(std::string& out, std::string_view indent, std::string_view key, const spec::Sourced<T>& item) {
  const std::string spread = item.spread ? fmt::format(", spread: {}", *item.spread) : "";
  out += fmt::format("{}{}: {{value: {}, kind: {}{}, source: {}}}\n", indent, key, scalar(item.value),
                     name_of(item.kind), spread, in_quotes(item.source));
}

void write_gemm(std::string& out, const cost::GemmProfile& gemm) {
  out += "gemm:\n";
  write(out, "  ", "efficiency", gemm.efficiency);
  write(out, "  ", "sustained", gemm.sustained);
  write(out, "  ", "tile_m", gemm.tile_m);
  write(out, "  ", "tile_n", gemm.tile_n);
  write(out, "  ", "wave_quantisation", gemm.wave_quantisation);
  write(out, "  ", "k_overhead", gemm.k_overhead);
  write(out, "  ", "launch", gemm.launch);
}

void write_attention(std::string& out, const cost::AttentionProfile& entry) {
  out += fmt::format("  - implementation: {}\n    direction: {}\n", cost::name_of(entry.implementation),
                     cost::name_of(entry.direction));
  write(out, "    ", "efficiency_64", entry.efficiency_64);
  write(out, "    ", "efficiency_128", entry.efficiency_128);
  write(out, "    ", "masked_factor", entry.masked_factor);
  write(out, "    ", "masked_keys", entry.masked_keys);
  write(out, "    ", "saturation_keys", entry.saturation_keys);
  write(out, "    ", "imbalance", entry.imbalance);
  write(out, "    ", "launch", entry.launch);
}

}  // namespace

std::string write_profile(const cost::KernelProfile& profile) {
  std::string out = "# Written by `ulysim calibrate fit`; edit the samples, not this file.\n";
  out += fmt::format("kernel_profile: {}\nsummary: {}\n", in_quotes(profile.name), in_quotes(profile.summary));
  write_gemm(out, profile.gemm);
  write(out, "", "attention_sustained", profile.attention_sustained);
  out += "attention:\n";
  for (const cost::AttentionProfile& entry : profile.attention) {
    write_attention(out, entry);
  }
  out += "memory_bound:\n";
  write(out, "  ", "bandwidth_efficiency", profile.memory_bound.bandwidth_efficiency);
  write(out, "  ", "launch", profile.memory_bound.launch);
  return out;
}

}  // namespace ulysim::calibration
