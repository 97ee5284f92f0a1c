#include <cstddef>
#include <utility>
#include <vector>

#include "calibration/cuda/sequence_attention.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr std::int64_t kBf16 = 2;
constexpr std::int64_t kVector = 8;

// Tensors of all tokens and some heads, and the buffers of one exchange.
struct Side {
  Buffer q{};
  Buffer k{};
  Buffer v{};
  Buffer out{};
  Buffer d_out{};
  Buffer dq{};
  Buffer dk{};
  Buffer dv{};
  Buffer stats{};
  Buffer packed{};
};

class Ulysses final : public SequenceAttention {
 public:
  Ulysses(const SequenceShape& shape, Group group)
      : shape_(shape),
        group_(std::move(group)),
        world_(group_.communicator->world()),
        q_split_(shape.heads, world_),
        kv_split_(shape.kv_heads, world_) {
    const std::int64_t q_bytes = kBf16 * shape.tokens * q_split_.per_peer().divisor() * shape.head_dim;
    const std::int64_t k_bytes = kBf16 * shape.tokens * kv_split_.per_peer().divisor() * shape.head_dim;
    for (const Member& member : group_.members) {
      Device& device = *member.device;
      sides_.push_back({.q = {device, q_bytes},
                        .k = {device, k_bytes},
                        .v = {device, k_bytes},
                        .out = {device, q_bytes},
                        .d_out = {device, q_bytes},
                        .dq = {device, q_bytes},
                        .dk = {device, k_bytes},
                        .dv = {device, k_bytes},
                        .stats = {device, 4 * shape.tokens * q_split_.per_peer().divisor()},
                        .packed = {device, q_bytes}});
    }
  }

  [[nodiscard]] TokenOrder token_order() const override { return TokenOrder::contiguous; }

  void forward(std::span<const LocalTensors> tensors) override {
    to_heads(tensors, q_split_, &LocalTensors::q, &Side::q);
    to_heads(tensors, kv_split_, &LocalTensors::k, &Side::k);
    to_heads(tensors, kv_split_, &LocalTensors::v, &Side::v);
    for (std::size_t m = 0; m < sides_.size(); ++m) {
      const Side& side = sides_[m];
      group_.members[m].attention->forward(block(), {.q = side.q.as<Bf16>(),
                                                     .k = side.k.as<Bf16>(),
                                                     .v = side.v.as<Bf16>(),
                                                     .out = side.out.as<Bf16>(),
                                                     .stats = side.stats.as<float>()});
    }
    to_tokens(tensors, q_split_, &Side::out, &LocalTensors::out);
  }

  void backward(std::span<const LocalTensors> tensors) override {
    to_heads(tensors, q_split_, &LocalTensors::d_out, &Side::d_out);
    for (std::size_t m = 0; m < sides_.size(); ++m) {
      const Side& side = sides_[m];
      group_.members[m].attention->backward(block(), {.q = side.q.as<Bf16>(),
                                                      .k = side.k.as<Bf16>(),
                                                      .v = side.v.as<Bf16>(),
                                                      .out = side.out.as<Bf16>(),
                                                      .stats = side.stats.as<float>(),
                                                      .d_out = side.d_out.as<Bf16>(),
                                                      .dq = side.dq.as<Bf16>(),
                                                      .dk = side.dk.as<Bf16>(),
                                                      .dv = side.dv.as<Bf16>()});
    }
    to_tokens(tensors, q_split_, &Side::dq, &LocalTensors::dq);
    to_tokens(tensors, kv_split_, &Side::dk, &LocalTensors::dk);
    to_tokens(tensors, kv_split_, &Side::dv, &LocalTensors::dv);
  }

 private:
  [[nodiscard]] BlockShape block() const {
    return {.queries = shape_.tokens,
            .keys = shape_.tokens,
            .heads = q_split_.per_peer().divisor(),
            .kv_heads = kv_split_.per_peer().divisor(),
            .head_dim = shape_.head_dim,
            .mask = shape_.mask};
  }
  [[nodiscard]] std::int64_t tokens_here() const { return shape_.tokens / world_; }
  [[nodiscard]] std::int64_t peer_bytes(const HeadSplit& split) const {
    return kBf16 * tokens_here() * split.per_peer().divisor() * shape_.head_dim;
  }

  // Parts arrive in the order of the ranks, which is the order of the tokens: nothing is to be unpacked.
  void to_heads(std::span<const LocalTensors> tensors, const HeadSplit& split, const Bf16* LocalTensors::*from,
                Buffer Side::*to) {
    std::vector<Transfer> transfers;
    for (std::size_t m = 0; m < sides_.size(); ++m) {
      Device& device = *group_.members[m].device;
      device.launch(PackHeads{.from = reinterpret_cast<const Vector16*>(tensors[m].*from),
                              .to = sides_[m].packed.as<Vector16>(),
                              .tokens = tokens_here(),
                              .split = split,
                              .vectors = shape_.head_dim / kVector},
                    Lane::compute);
      device.order(Lane::compute, Lane::exchange);
      transfers.push_back({.send = sides_[m].packed.as<void>(), .receive = (sides_[m].*to).as<void>()});
    }
    group_.communicator->all_to_all(transfers, peer_bytes(split));
    for (const Member& member : group_.members) {
      member.device->order(Lane::exchange, Lane::compute);
    }
  }

  void to_tokens(std::span<const LocalTensors> tensors, const HeadSplit& split, Buffer Side::*from,
                 Bf16* LocalTensors::*to) {
    std::vector<Transfer> transfers;
    for (std::size_t m = 0; m < sides_.size(); ++m) {
      group_.members[m].device->order(Lane::compute, Lane::exchange);
      transfers.push_back({.send = (sides_[m].*from).as<void>(), .receive = sides_[m].packed.as<void>()});
    }
    group_.communicator->all_to_all(transfers, peer_bytes(split));
    for (std::size_t m = 0; m < sides_.size(); ++m) {
      Device& device = *group_.members[m].device;
      device.order(Lane::exchange, Lane::compute);
      device.launch(UnpackHeads{.from = sides_[m].packed.as<Vector16>(),
                                .to = reinterpret_cast<Vector16*>(tensors[m].*to),
                                .tokens = tokens_here(),
                                .split = split,
                                .vectors = shape_.head_dim / kVector},
                    Lane::compute);
    }
  }

  SequenceShape shape_;
  Group group_;
  std::int64_t world_;
  HeadSplit q_split_;
  HeadSplit kv_split_;
  std::vector<Side> sides_;
};

}  // namespace

std::unique_ptr<SequenceAttention> make_ulysses(const SequenceShape& shape, Group group) {
  return std::make_unique<Ulysses>(shape, std::move(group));
}

}  // namespace ulysim::calibration::cuda
