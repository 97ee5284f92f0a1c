#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "calibration/cuda/attention_work.h"

namespace ulysim::calibration::cuda {

/// A part of the attention matrix in which every query sees every key, or (causal) a square on the diagonal. Rows are
/// counted in the buffers that the rank holds.
struct Block {
  std::int64_t query_begin{};
  std::int64_t queries{};
  std::int64_t key_begin{};
  std::int64_t keys{};
  Mask mask{};
  friend bool operator==(const Block&, const Block&) = default;
};

/// A sequence in 2·world chunks of `chunk` tokens; rank r holds chunks r and 2·world − 1 − r, in this order (zigzag
/// ring attention; what Megatron-Core calls load-balanced context parallelism).
struct ZigzagSplit {
  int world{};
  std::int64_t chunk{};
  Mask mask{};
};

/// What the queries of `rank` do with the keys that `source` holds.
[[nodiscard]] Block ring_block(const ZigzagSplit& split, int rank, int source);

/// What the queries of `rank` do with all keys in their natural order: at most four blocks, none empty.
[[nodiscard]] std::vector<Block> gathered_blocks(const ZigzagSplit& split, int rank);

}  // namespace ulysim::calibration::cuda
