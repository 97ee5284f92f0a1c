#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/mask.h"
#include "sim/workload/tensor.h"

namespace ulysim::workload {

/// Global positions first, first+step, … below end.
struct TokenRange {
  std::int64_t first{};
  std::int64_t end{};
  std::int64_t step{1};
  [[nodiscard]] std::int64_t count() const { return end <= first ? 0 : (end - first + step - 1) / step; }
};
using TokenSet = std::vector<TokenRange>;

/// Positions that ring coordinate `ring` of `rings` holds of `tokens` positions. Requires divisibility
/// (by 2·rings for zigzag).
[[nodiscard]] TokenSet ring_tokens(std::int64_t tokens, Layout layout, std::int64_t ring, std::int64_t rings);

struct PairCount {
  std::int64_t unmasked{};  ///< (query, key) pairs that the mask lets through, exactly
  std::int64_t computed{};  ///< what a kernel computes for them: the same, but whole blocks under a block pattern
};
/// Queries and keys have ranges of one step (unless nothing is masked); under a block pattern the step divides its
/// block. O(ranges² · (1 + documents and chunks that a pair of ranges shares + blocks of queries, under a block
/// pattern)), whatever the lengths. RangeError beyond 2^63.
[[nodiscard]] PairCount pair_count(const TokenSet& queries, const TokenSet& keys, const Mask& mask);
/// The unmasked ones.
[[nodiscard]] std::int64_t count_pairs(const TokenSet& queries, const TokenSet& keys, const Mask& mask);

/// The rectangle a kernel would be called on: rows with at least one key, columns with at least one query
/// (zigzag calls half the rows, or half the columns). Of block patterns only a local one leaves rows and columns out:
/// it counts as a window.
struct Rectangle {
  std::int64_t queries{};
  std::int64_t keys{};
};
[[nodiscard]] Rectangle bounding_rectangle(const TokenSet& queries, const TokenSet& keys, const Mask& mask);

}  // namespace ulysim::workload
