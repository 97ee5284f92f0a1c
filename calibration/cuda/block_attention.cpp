#include "calibration/cuda/block_attention.h"

#include <cmath>

namespace ulysim::calibration::cuda {
namespace {

constexpr std::int64_t kBf16 = 2;
constexpr std::int64_t kFloat = 4;

}  // namespace

std::int64_t kv_bytes(const SequenceShape& shape, std::int64_t rows) {
  return kBf16 * rows * shape.kv_heads * shape.head_dim;
}

BlockAttention::BlockAttention(const Member& member, const SequenceShape& shape, std::int64_t queries,
                               std::int64_t most_keys)
    : member_(member),
      shape_(shape),
      queries_(queries),
      sum_(*member.device, kFloat * queries * shape.heads * shape.head_dim),
      stats_(*member.device, kFloat * queries * shape.heads),
      block_out_(*member.device, kBf16 * queries * shape.heads * shape.head_dim),
      block_stats_(*member.device, kFloat * queries * shape.heads),
      block_dk_(*member.device, kv_bytes(shape, most_keys)),
      block_dv_(*member.device, kv_bytes(shape, most_keys)) {}

BlockShape BlockAttention::shape_of(const Block& block) const {
  return {.queries = block.queries,
          .keys = block.keys,
          .heads = shape_.heads,
          .kv_heads = shape_.kv_heads,
          .head_dim = shape_.head_dim,
          .mask = block.mask};
}

BlockRows BlockAttention::rows_of(const Block& block) const {
  return {.all_rows = queries_, .row_begin = block.query_begin, .rows = block.queries, .heads = shape_.heads};
}

void BlockAttention::begin_forward() {
  member_.device->launch(
      Fill{.to = sum_.as<float>(), .value = 0.0F, .count = queries_ * shape_.heads * shape_.head_dim}, Lane::compute);
  // No key seen yet: the sum of exponentials is 0, its logarithm minus infinity.
  member_.device->launch(Fill{.to = stats_.as<float>(), .value = -INFINITY, .count = queries_ * shape_.heads},
                         Lane::compute);
}

void BlockAttention::add_forward(const Block& block, const LocalTensors& tensors) {
  const std::int64_t row = shape_.heads * shape_.head_dim;
  const std::int64_t kv_row = shape_.kv_heads * shape_.head_dim;
  member_.attention->forward(shape_of(block), {.q = tensors.q + block.query_begin * row,
                                               .k = tensors.k + block.key_begin * kv_row,
                                               .v = tensors.v + block.key_begin * kv_row,
                                               .out = block_out_.as<Bf16>(),
                                               .stats = block_stats_.as<float>()});
  member_.device->launch(MergeOut{.out = sum_.as<float>(),
                                  .stats = stats_.as<float>(),
                                  .block_out = block_out_.as<Vector16>(),
                                  .block_stats = block_stats_.as<float>(),
                                  .all_rows = queries_,
                                  .row_begin = block.query_begin,
                                  .rows = block.queries,
                                  .heads = shape_.heads,
                                  .vectors = shape_.head_dim / 8},
                         Lane::compute);
  member_.device->launch(
      MergeStats{.stats = stats_.as<float>(), .block_stats = block_stats_.as<float>(), .rows = rows_of(block)},
      Lane::compute);
}

void BlockAttention::finish_forward(Bf16* out) {
  member_.device->launch(Round{.from = sum_.as<float>(), .to = out, .count = queries_ * shape_.heads * shape_.head_dim},
                         Lane::compute);
}

void BlockAttention::begin_backward() {
  member_.device->launch(
      Fill{.to = sum_.as<float>(), .value = 0.0F, .count = queries_ * shape_.heads * shape_.head_dim}, Lane::compute);
}

void BlockAttention::add_backward(const Block& block, const LocalTensors& tensors, float* dk, float* dv) {
  const std::int64_t row = shape_.heads * shape_.head_dim;
  const std::int64_t kv_row = shape_.kv_heads * shape_.head_dim;
  Device& device = *member_.device;
  device.launch(
      SliceStats{.stats = stats_.as<float>(), .block_stats = block_stats_.as<float>(), .rows = rows_of(block)},
      Lane::compute);
  member_.attention->backward(shape_of(block), {.q = tensors.q + block.query_begin * row,
                                                .k = tensors.k + block.key_begin * kv_row,
                                                .v = tensors.v + block.key_begin * kv_row,
                                                .out = tensors.out + block.query_begin * row,
                                                .stats = block_stats_.as<float>(),
                                                .d_out = tensors.d_out + block.query_begin * row,
                                                .dq = block_out_.as<Bf16>(),
                                                .dk = block_dk_.as<Bf16>(),
                                                .dv = block_dv_.as<Bf16>()});
  const std::int64_t keys = block.keys * kv_row;
  device.launch(AddRounded{.from = block_out_.as<Bf16>(),
                           .sum = sum_.as<float>() + block.query_begin * row,
                           .count = block.queries * row},
                Lane::compute);
  device.launch(AddRounded{.from = block_dk_.as<Bf16>(), .sum = dk + block.key_begin * kv_row, .count = keys},
                Lane::compute);
  device.launch(AddRounded{.from = block_dv_.as<Bf16>(), .sum = dv + block.key_begin * kv_row, .count = keys},
                Lane::compute);
}

void BlockAttention::finish_backward(Bf16* dq) {
  finish_forward(dq);
}

}  // namespace ulysim::calibration::cuda
