#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ulysim::workload {

/// How the frozen matrices of the layers are held. nf4: 4-bit normal floats in blocks of 64, the blocks' scales in
/// 8 bits with an fp32 one for 256 of them (QLoRA, arXiv 2305.14314 §3); made bf16 before each use.
enum class BaseWeights : std::uint8_t { bf16, nf4 };

/// Low-rank adapters beside frozen weights: y = x·W + x·A·B (LoRA, arXiv 2106.09685). Only A and B are trained.
struct Adapters {
  std::int64_t rank{16};
  std::vector<std::string> targets{};  ///< linear maps, of adapter_targets(); empty: all of the layers
  BaseWeights base{BaseWeights::bf16};

  [[nodiscard]] bool reach(std::string_view map) const {
    return targets.empty() || std::find(targets.begin(), targets.end(), map) != targets.end();
  }
};

/// The linear maps of layers as transformers calls them; the latter four are those of multi-head latent attention.
[[nodiscard]] const std::vector<std::string>& adapter_targets();

}  // namespace ulysim::workload
