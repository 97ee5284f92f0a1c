#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ulysim::workload {

/// Attention that keeps some square blocks of the score matrix and skips the others, as DeepSpeed's sparse attention
/// does. Block (a, b) of queries a and keys b, each counted from position 0, is kept when
///  - |a − b| < local (its own and the local−1 blocks before it), or
///  - a or b is one of the first `global` blocks (BigBird, Longformer; arXiv 2007.14062, 2004.05150), or
///  - stride divides a − b (Sparse Transformer's strided pattern, arXiv 1904.10509 §4.2), or
///  - `density` picks it: of the n blocks that a row of blocks may see causally, its own and as many of the others,
///    evenly spaced from a seeded beginning, as make round(density · n) and at least 1 in all.
/// A causal mask then hides what lies above the diagonal. Kernels compute every kept block whole.
struct BlockSparse {
  std::int64_t block{64};  ///< tokens, both ways
  std::int64_t local{1};
  std::int64_t global{};
  std::optional<std::int64_t> stride{};
  std::optional<double> density{};  ///< causal only; in (0, 1]
  std::uint64_t seed{};             ///< of `density`
  friend bool operator==(const BlockSparse&, const BlockSparse&) = default;
};

/// Of the blocks [from, to), all of them before the row's own or all behind it, those that row `row` keeps. O(1).
[[nodiscard]] std::int64_t kept_blocks(const BlockSparse& pattern, std::int64_t row, std::int64_t from,
                                       std::int64_t to);

/// Where the documents of a packed sequence end, ascending, the first above 0. Behind the last the same lengths come
/// again, so that a longer sequence is packed alike. Shared, because every attention op names it.
using DocumentEnds = std::shared_ptr<const std::vector<std::int64_t>>;

/// Which keys a query may see: those that every part of the mask lets through.
struct Mask {
  enum class Kind : std::uint8_t { full, causal };
  Kind kind{Kind::causal};
  std::optional<std::int64_t> window{};  ///< causal only: the last `window` keys, its own included
  std::optional<std::int64_t> chunk{};   ///< only keys of the query's own chunk of so many positions
  std::optional<BlockSparse> sparse{};   ///< without a window
  DocumentEnds documents{};              ///< only keys of the query's own document; null: there is but one
  friend bool operator==(const Mask& a, const Mask& b);
};

/// "causal window=4096", "causal, 12 documents".
[[nodiscard]] std::string describe(const Mask& mask);
/// "block 128, local 8, global 1, stride 16", as a scenario writes it.
[[nodiscard]] std::string describe(const BlockSparse& pattern);

}  // namespace ulysim::workload
