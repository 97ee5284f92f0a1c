#include "hw_models/cost/kernel_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hw_models/spec/read_sourced.h"  // and with it the document reader: this floor reads files as spec does
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"

namespace ulysim::cost {
namespace {

using kernel::AttentionKernel;
using kernel::Direction;

const std::array<std::string, 4> kImplementations{"flash-attention-2", "flash-attention-3", "cudnn", "sdpa"};
const std::array<std::string, 2> kDirections{"forward", "backward"};
constexpr spec::Bounds<double> kFraction{1e-6, 1.0};
constexpr spec::Bounds<double> kShare{0.0, 1.0};
constexpr spec::Bounds<double> kMaskedFactor{0.5, 1.0};
constexpr spec::Bounds<double> kMaskedKeys{0.0, 4096.0};
constexpr spec::Bounds<double> kElements{0.0, 1e6};
constexpr spec::Bounds<std::int64_t> kTile{1, 4096};
constexpr spec::Bounds<Duration> kLaunch{Duration(0), Duration(1'000'000'000)};  // a millisecond

GemmProfile read_gemm(const config::Node& node, Diagnostics& diagnostics) {
  config::Mapping mapping(node, "gemm", diagnostics);
  GemmProfile result;
  read_sourced(mapping, "efficiency", result.efficiency, kFraction);
  read_sourced(mapping, "sustained", result.sustained, kFraction);
  read_sourced(mapping, "tile_m", result.tile_m, kTile);
  read_sourced(mapping, "tile_n", result.tile_n, kTile);
  read_sourced(mapping, "wave_quantisation", result.wave_quantisation, kShare);
  read_sourced(mapping, "k_overhead", result.k_overhead, kElements);
  read_sourced(mapping, "launch", result.launch, kLaunch);
  mapping.finish();
  return result;
}

AttentionProfile read_attention(const config::Node& node, std::size_t index, Diagnostics& diagnostics) {
  config::Mapping mapping(node, fmt::format("attention[{}]", index), diagnostics);
  AttentionProfile result{
      .implementation = static_cast<AttentionKernel>(mapping.choice("implementation", kImplementations, 0)),
      .direction = static_cast<Direction>(mapping.choice("direction", kDirections, 0))};
  read_sourced(mapping, "efficiency_64", result.efficiency_64, kFraction);
  read_sourced(mapping, "efficiency_128", result.efficiency_128, kFraction);
  read_sourced(mapping, "masked_factor", result.masked_factor, kMaskedFactor);
  if (mapping.find("masked_keys") == nullptr) {
    result.masked_keys = {.value = 0.0, .source = "not in the profile: none", .kind = spec::SourceKind::assumed};
  } else {
    read_sourced(mapping, "masked_keys", result.masked_keys, kMaskedKeys);
  }
  read_sourced(mapping, "saturation_keys", result.saturation_keys, kElements);
  read_sourced(mapping, "imbalance", result.imbalance, kShare);
  read_sourced(mapping, "launch", result.launch, kLaunch);
  // Otherwise a larger head would take less time.
  if (result.efficiency_128.value > 2.0 * result.efficiency_64.value) {
    mapping.error("efficiency_128",
                  fmt::format("'{}' must not exceed twice efficiency_64", mapping.path_of("efficiency_128")));
  }
  mapping.finish();
  return result;
}

MemoryBoundProfile read_memory_bound(const config::Node& node, Diagnostics& diagnostics) {
  config::Mapping mapping(node, "memory_bound", diagnostics);
  MemoryBoundProfile result;
  read_sourced(mapping, "bandwidth_efficiency", result.bandwidth_efficiency, kFraction);
  read_sourced(mapping, "launch", result.launch, kLaunch);
  mapping.finish();
  return result;
}

bool is_entry(const AttentionProfile& p, AttentionKernel implementation, Direction direction) {
  return p.implementation == implementation && p.direction == direction;
}

void check_complete(config::Mapping& mapping, const KernelProfile& profile) {
  for (std::size_t i = 0; i < kImplementations.size(); ++i) {
    for (std::size_t d = 0; d < kDirections.size(); ++d) {
      const auto count = std::count_if(profile.attention.begin(), profile.attention.end(), [&](const auto& p) {
        return is_entry(p, static_cast<AttentionKernel>(i), static_cast<Direction>(d));
      });
      if (count != 1) {
        mapping.error("attention", fmt::format("'attention' has {} entries for {} {}, not one", count,
                                               kImplementations[i], kDirections[d]));
      }
    }
  }
}

KernelProfile read_profile(const config::Node& root) {
  Diagnostics diagnostics;
  config::Mapping mapping(root, "", diagnostics);
  KernelProfile profile;
  profile.name = mapping.required<std::string>("kernel_profile");
  profile.summary = mapping.optional<std::string>("summary", "");
  const config::Node empty{.kind = config::Node::Kind::mapping, .where = root.where};
  const auto section = [&](std::string_view key) -> const config::Node& {
    const config::Node* node = mapping.find(key);
    if (node == nullptr) {
      mapping.error(key, fmt::format("missing key '{}'", key));
    }
    return node == nullptr ? empty : *node;
  };
  profile.gemm = read_gemm(section("gemm"), diagnostics);
  read_sourced(mapping, "attention_sustained", profile.attention_sustained, kFraction);
  std::size_t index = 0;
  for (const config::Node* item : mapping.items("attention")) {
    profile.attention.push_back(read_attention(*item, index++, diagnostics));
  }
  check_complete(mapping, profile);
  profile.memory_bound = read_memory_bound(section("memory_bound"), diagnostics);
  mapping.finish();
  diagnostics.throw_if_any();
  return profile;
}

}  // namespace

std::string_view name_of(AttentionKernel implementation) {
  return kImplementations.at(static_cast<std::size_t>(implementation));
}

std::string_view name_of(Direction direction) {
  return kDirections.at(static_cast<std::size_t>(direction));
}

const AttentionProfile& attention_profile(const KernelProfile& profile, AttentionKernel implementation,
                                          Direction direction) {
  const auto found = std::find_if(profile.attention.begin(), profile.attention.end(),
                                  [&](const auto& p) { return is_entry(p, implementation, direction); });
  ULYSIM_CHECK(found != profile.attention.end(), "kernel profile '{}' has no {} {}", profile.name,
               name_of(implementation), name_of(direction));
  return *found;
}

KernelProfile load_kernel_profile(const std::filesystem::path& path) {
  return read_profile(config::load_file(path));
}

KernelProfile parse_kernel_profile(std::string_view text, const std::string& file) {
  return read_profile(config::parse_yaml(text, file));
}

KernelProfile find_kernel_profile(const std::filesystem::path& catalog_dir, const spec::Gpu& gpu) {
  const std::string name = gpu.kernel_profile.empty() ? "generic" : gpu.kernel_profile;
  return load_kernel_profile(catalog_dir / "kernels" / (name + ".yaml"));
}

}  // namespace ulysim::cost
