#pragma once

#include <cstdint>
#include <span>

#include "calibration/cuda/communicator.h"
#include "calibration/cuda/sequence_attention.h"
#include "calibration/cuda/sequence_split.h"

namespace ulysim::calibration::cuda {

/// One rank's attention in blocks of keys: partial results are merged in fp32. All work goes to Lane::compute.
class BlockAttention {
 public:
  /// `queries`: those of the rank; `most_keys`: of the largest block.
  BlockAttention(const Member& member, const SequenceShape& shape, std::int64_t queries, std::int64_t most_keys);

  void begin_forward();
  /// Row 0 of q, k, v is row 0 of the block's coordinates.
  void add_forward(const Block& block, const LocalTensors& tensors);
  void finish_forward(Bf16* out);

  void begin_backward();
  /// Adds to dk and dv (fp32, in the block's coordinates of keys) and to the gradient of the queries.
  void add_backward(const Block& block, const LocalTensors& tensors, float* dk, float* dv);
  void finish_backward(Bf16* dq);

 private:
  [[nodiscard]] BlockShape shape_of(const Block& block) const;
  [[nodiscard]] BlockRows rows_of(const Block& block) const;

  Member member_;
  SequenceShape shape_;
  std::int64_t queries_;
  Buffer sum_;    ///< fp32 [queries][heads][head_dim]: out, later dq
  Buffer stats_;  ///< [heads][queries]
  Buffer block_out_;
  Buffer block_stats_;
  Buffer block_dk_;
  Buffer block_dv_;
};

/// Bytes of `rows` tokens of K or V in bf16.
[[nodiscard]] std::int64_t kv_bytes(const SequenceShape& shape, std::int64_t rows);

}  // namespace ulysim::calibration::cuda
