#include <cstddef>
#include <utility>
#include <vector>

#include "calibration/cuda/block_attention.h"

namespace ulysim::calibration::cuda {
namespace {

// All keys of the sequence, as they arrive and in their natural order; gradients in fp32.
struct Gathering {
  BlockAttention blocks;
  Buffer arrived{};
  Buffer k{};
  Buffer v{};
  Buffer dk{};
  Buffer dv{};
  Buffer zigzag{};  ///< a gradient of all keys, in the order of the ranks
  Buffer mine{};
};

class Gathered final : public SequenceAttention {
 public:
  Gathered(const SequenceShape& shape, Group group)
      : shape_(shape), group_(std::move(group)), world_(group_.communicator->world()) {
    for (const Member& member : group_.members) {
      Device& device = *member.device;
      const std::int64_t all = kv_bytes(shape_, shape_.tokens);
      gatherings_.push_back({.blocks = BlockAttention(member, shape_, tokens_here(), shape_.tokens),
                             .arrived = {device, all},
                             .k = {device, all},
                             .v = {device, all},
                             .dk = {device, 2 * all},
                             .dv = {device, 2 * all},
                             .zigzag = {device, 2 * all},
                             .mine = {device, 2 * all / world_}});
    }
  }

  [[nodiscard]] TokenOrder token_order() const override { return TokenOrder::zigzag; }

  void forward(std::span<const LocalTensors> tensors) override {
    gather(tensors);
    for (std::size_t m = 0; m < gatherings_.size(); ++m) {
      gatherings_[m].blocks.begin_forward();
      for (const Block& block : blocks(m)) {
        gatherings_[m].blocks.add_forward(block, with_all_keys(tensors, m));
      }
      gatherings_[m].blocks.finish_forward(tensors[m].out);
    }
  }

  void backward(std::span<const LocalTensors> tensors) override {
    gather(tensors);
    for (std::size_t m = 0; m < gatherings_.size(); ++m) {
      const Gathering& at = gatherings_[m];
      for (float* const gradient : {at.dk.as<float>(), at.dv.as<float>()}) {
        device(m).launch(Fill{.to = gradient, .value = 0.0F, .count = world_ * kv_elements()}, Lane::compute);
      }
      gatherings_[m].blocks.begin_backward();
      for (const Block& block : blocks(m)) {
        gatherings_[m].blocks.add_backward(block, with_all_keys(tensors, m), at.dk.as<float>(), at.dv.as<float>());
      }
      gatherings_[m].blocks.finish_backward(tensors[m].dq);
    }
    reduce(tensors, &Gathering::dk, &LocalTensors::dk);
    reduce(tensors, &Gathering::dv, &LocalTensors::dv);
  }

 private:
  [[nodiscard]] std::int64_t tokens_here() const { return shape_.tokens / world_; }
  [[nodiscard]] std::int64_t kv_elements() const { return tokens_here() * shape_.kv_heads * shape_.head_dim; }
  [[nodiscard]] Device& device(std::size_t m) const { return *group_.members[m].device; }

  [[nodiscard]] std::vector<Block> blocks(std::size_t m) const {
    return gathered_blocks({.world = world_, .chunk = tokens_here() / 2, .mask = shape_.mask}, group_.members[m].rank);
  }

  [[nodiscard]] LocalTensors with_all_keys(std::span<const LocalTensors> tensors, std::size_t m) const {
    LocalTensors result = tensors[m];
    result.k = gatherings_[m].k.as<Bf16>();
    result.v = gatherings_[m].v.as<Bf16>();
    return result;
  }

  // Chunks are a whole number of 16-byte vectors, as head_dim is a multiple of 8.
  [[nodiscard]] CopyChunks reorder(const void* from, void* to, std::int64_t element_bytes, ChunkOrder order) const {
    return {.from = static_cast<const Vector16*>(from),
            .to = static_cast<Vector16*>(to),
            .chunk_vectors = kv_elements() / 2 * element_bytes / 16,
            .world = world_,
            .order = order};
  }

  void gather(std::span<const LocalTensors> tensors) {
    gather(tensors, &LocalTensors::k, &Gathering::k);
    gather(tensors, &LocalTensors::v, &Gathering::v);
  }
  void gather(std::span<const LocalTensors> tensors, const Bf16* LocalTensors::*from, Buffer Gathering::*to) {
    std::vector<Transfer> transfers;
    for (std::size_t m = 0; m < gatherings_.size(); ++m) {
      device(m).order(Lane::compute, Lane::exchange);
      transfers.push_back({.send = tensors[m].*from, .receive = gatherings_[m].arrived.as<void>()});
    }
    group_.communicator->all_gather(transfers, kv_bytes(shape_, tokens_here()));
    for (std::size_t m = 0; m < gatherings_.size(); ++m) {
      device(m).order(Lane::exchange, Lane::compute);
      device(m).launch(
          reorder(gatherings_[m].arrived.as<void>(), (gatherings_[m].*to).as<void>(), 2, ChunkOrder::zigzag_to_natural),
          Lane::compute);
    }
  }

  void reduce(std::span<const LocalTensors> tensors, Buffer Gathering::*from, Bf16* LocalTensors::*to) {
    std::vector<Transfer> transfers;
    for (std::size_t m = 0; m < gatherings_.size(); ++m) {
      const Gathering& at = gatherings_[m];
      device(m).launch(reorder((at.*from).as<void>(), at.zigzag.as<void>(), 4, ChunkOrder::natural_to_zigzag),
                       Lane::compute);
      device(m).order(Lane::compute, Lane::exchange);
      transfers.push_back({.send = at.zigzag.as<void>(), .receive = at.mine.as<void>()});
    }
    group_.communicator->reduce_scatter(transfers, kv_elements());
    for (std::size_t m = 0; m < gatherings_.size(); ++m) {
      device(m).order(Lane::exchange, Lane::compute);
      device(m).launch(Round{.from = gatherings_[m].mine.as<float>(), .to = tensors[m].*to, .count = kv_elements()},
                       Lane::compute);
    }
  }

  SequenceShape shape_;
  Group group_;
  int world_;
  std::vector<Gathering> gatherings_;
};

}  // namespace

std::unique_ptr<SequenceAttention> make_gathered(const SequenceShape& shape, Group group) {
  return std::make_unique<Gathered>(shape, std::move(group));
}

}  // namespace ulysim::calibration::cuda
