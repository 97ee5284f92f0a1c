#include "calibration/cuda/sequence_split.h"

namespace ulysim::calibration::cuda {

Block ring_block(const ZigzagSplit& split, int rank, int source) {
  const std::int64_t c = split.chunk;
  if (split.mask == Mask::full || source == rank) {
    return {.query_begin = 0, .queries = 2 * c, .key_begin = 0, .keys = 2 * c, .mask = split.mask};
  }
  // A rank before this one: its low chunk is before both of ours, its high chunk after both. A rank after this one:
  // both its chunks lie between ours.
  return source < rank ? Block{.query_begin = 0, .queries = 2 * c, .key_begin = 0, .keys = c, .mask = Mask::full}
                       : Block{.query_begin = c, .queries = c, .key_begin = 0, .keys = 2 * c, .mask = Mask::full};
}

std::vector<Block> gathered_blocks(const ZigzagSplit& split, int rank) {
  const std::int64_t c = split.chunk;
  if (split.mask == Mask::full) {
    return {{.query_begin = 0, .queries = 2 * c, .key_begin = 0, .keys = 2 * c * split.world, .mask = Mask::full}};
  }
  std::vector<Block> blocks;
  const std::int64_t places[] = {rank, 2 * std::int64_t{split.world} - 1 - rank};
  for (std::int64_t slot = 0; slot < 2; ++slot) {
    const std::int64_t before = places[slot] * c;
    if (before > 0) {
      blocks.push_back({.query_begin = slot * c, .queries = c, .key_begin = 0, .keys = before, .mask = Mask::full});
    }
    blocks.push_back({.query_begin = slot * c, .queries = c, .key_begin = before, .keys = c, .mask = Mask::causal});
  }
  return blocks;
}

}  // namespace ulysim::calibration::cuda
