#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/op.h"
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

/// Exact number of (query, key) pairs that `mask` lets through. O(ranges²), whatever the lengths
/// (striped ranges of equal step: O(1) each).
[[nodiscard]] std::int64_t count_pairs(const TokenSet& queries, const TokenSet& keys, const Mask& mask);

/// The rectangle a kernel would be called on: rows with at least one key, columns with at least one query
/// (zigzag calls half the rows, or half the columns).
struct Rectangle {
  std::int64_t queries{};
  std::int64_t keys{};
};
[[nodiscard]] Rectangle bounding_rectangle(const TokenSet& queries, const TokenSet& keys, const Mask& mask);

}  // namespace ulysim::workload
