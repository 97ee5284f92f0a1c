#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/section.h"
#include "sim/scenario/sequence.h"
#include "sim/strategies/plan.h"

namespace ulysim::scenario {

// Bounds beyond which a number is a slip of the keyboard, and below which every product in the simulator fits its
// type: a rank's query–key pairs stay under 2^62, and a step unrolls into some tens of millions of ops.
inline constexpr std::int64_t kLongestSequence = std::int64_t{1} << 31;
inline constexpr std::int64_t kMostSequences = std::int64_t{1} << 20;
inline constexpr std::int64_t kMostMicroSteps = 4096;
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 60;

/// The training keys, defaults filled in, before a plan's degrees are known.
struct Training {
  strategies::Plan options{};  ///< all but name, mesh, ring options and accumulation; not yet padded to a multiple
  workload::BaseWeights base_precision{};  ///< of the weights beside adapters
  std::optional<std::int64_t> accumulation{};
  std::optional<std::int64_t> global_batch{};  ///< excludes `accumulation`
  std::string framework{"deepspeed-hf"};
  Location framework_at{};
  std::optional<std::int64_t> total_tokens{};
  Padding padding{};
};

/// Lays the training keys of `section` over `training`; keys that are not there change nothing.
void read_training(Section& section, Training& training);

/// The training keys that stand in `node`, in schema order, nested ones as "optimizer.offload".
[[nodiscard]] std::vector<std::string> training_keys_in(const config::Node& node);

}  // namespace ulysim::scenario
