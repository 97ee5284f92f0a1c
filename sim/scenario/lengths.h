#pragma once

#include <cstdint>
#include <vector>

namespace ulysim::scenario {

/// More documents in one sequence than this are refused.
inline constexpr std::int64_t kMostDocuments = 1 << 16;

/// How long the documents of a data set are.
struct LengthDistribution {
  enum class Kind : std::uint8_t { constant, uniform, lognormal };
  Kind kind{Kind::constant};
  double mean{};      ///< constant and lognormal
  double sigma{1.0};  ///< lognormal: standard deviation of the logarithm
  std::int64_t min{1};
  std::int64_t max{};  ///< drawn lengths are clamped to [min, max]; uniform: its bounds
  std::uint64_t seed{};
};

/// Documents drawn one after the other until they fill `pack_to` tokens, the last one cut: their ends, ascending.
/// The same on every machine: integers, + − × ÷, and a normal variate that is a sum of twelve uniform ones (Irwin–Hall:
/// tails end at six sigma). Stops behind kMostDocuments.
[[nodiscard]] std::vector<std::int64_t> draw_documents(const LengthDistribution& distribution, std::int64_t pack_to);

}  // namespace ulysim::scenario
