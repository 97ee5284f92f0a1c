#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "calibration/cuda/block_attention.h"

namespace ulysim::calibration::cuda {
namespace {

// What a rank holds: K then V of the step in one of two buffers while the other receives the next; their gradients in
// fp32 in one of two others.
struct Station {
  BlockAttention blocks;
  std::array<Buffer, 2> kv{};
  std::array<Buffer, 2> gradient{};
};

class Ring final : public SequenceAttention {
 public:
  Ring(const SequenceShape& shape, Group group)
      : shape_(shape), group_(std::move(group)), world_(group_.communicator->world()) {
    for (const Member& member : group_.members) {
      Device& device = *member.device;
      const std::int64_t bytes = 2 * kv_bytes(shape_, tokens_here());
      stations_.push_back({.blocks = BlockAttention(member, shape_, tokens_here(), tokens_here()),
                           .kv = {Buffer(device, bytes), Buffer(device, bytes)},
                           .gradient = {Buffer(device, 2 * bytes), Buffer(device, 2 * bytes)}});
    }
  }

  [[nodiscard]] TokenOrder token_order() const override { return TokenOrder::zigzag; }

  void forward(std::span<const LocalTensors> tensors) override {
    load(tensors);
    for (Station& station : stations_) {
      station.blocks.begin_forward();
    }
    for (int step = 0; step < world_; ++step) {
      start_step(step);
      for (std::size_t m = 0; m < stations_.size(); ++m) {
        stations_[m].blocks.add_forward(block(m, step), travelling(tensors, m, step));
      }
    }
    for (std::size_t m = 0; m < stations_.size(); ++m) {
      stations_[m].blocks.finish_forward(tensors[m].out);
    }
  }

  void backward(std::span<const LocalTensors> tensors) override {
    load(tensors);
    for (std::size_t m = 0; m < stations_.size(); ++m) {
      stations_[m].blocks.begin_backward();
      device(m).launch(Fill{.to = stations_[m].gradient[0].as<float>(), .value = 0.0F, .count = 2 * kv_elements()},
                       Lane::compute);
    }
    for (int step = 0; step < world_; ++step) {
      start_step(step);
      for (std::size_t m = 0; m < stations_.size(); ++m) {
        auto* const gradient = stations_[m].gradient[parity(step)].as<float>();
        stations_[m].blocks.add_backward(block(m, step), travelling(tensors, m, step), gradient,
                                         gradient + kv_elements());
      }
      pass_gradients_on(step);
    }
    for (std::size_t m = 0; m < stations_.size(); ++m) {
      // After as many shifts as ranks, the gradients are home.
      device(m).order(Lane::exchange, Lane::compute);
      const auto* const gradient = stations_[m].gradient[parity(world_)].as<float>();
      stations_[m].blocks.finish_backward(tensors[m].dq);
      device(m).launch(Round{.from = gradient, .to = tensors[m].dk, .count = kv_elements()}, Lane::compute);
      device(m).launch(Round{.from = gradient + kv_elements(), .to = tensors[m].dv, .count = kv_elements()},
                       Lane::compute);
    }
  }

 private:
  static std::size_t parity(int step) { return static_cast<std::size_t>(step % 2); }
  [[nodiscard]] std::int64_t tokens_here() const { return shape_.tokens / world_; }
  [[nodiscard]] std::int64_t kv_elements() const { return tokens_here() * shape_.kv_heads * shape_.head_dim; }
  [[nodiscard]] Device& device(std::size_t m) const { return *group_.members[m].device; }

  [[nodiscard]] Block block(std::size_t m, int step) const {
    const int rank = group_.members[m].rank;
    return ring_block({.world = world_, .chunk = tokens_here() / 2, .mask = shape_.mask}, rank,
                      (rank - step + world_) % world_);
  }

  [[nodiscard]] LocalTensors travelling(std::span<const LocalTensors> tensors, std::size_t m, int step) const {
    LocalTensors result = tensors[m];
    result.k = stations_[m].kv[parity(step)].as<Bf16>();
    result.v = result.k + kv_elements();
    return result;
  }

  void load(std::span<const LocalTensors> tensors) {
    const std::int64_t bytes = kv_bytes(shape_, tokens_here());
    for (std::size_t m = 0; m < stations_.size(); ++m) {
      auto* const kv = stations_[m].kv[0].as<Bf16>();
      device(m).copy(kv, tensors[m].k, bytes, Lane::compute);
      device(m).copy(kv + kv_elements(), tensors[m].v, bytes, Lane::compute);
    }
  }

  // The keys of this step are there; those of the next start to travel. They overwrite what the step before has read,
  // hence they wait for it; and compute, which may not be ahead of the exchange, waits for what arrived.
  void start_step(int step) {
    std::vector<Transfer> transfers;
    for (std::size_t m = 0; m < stations_.size(); ++m) {
      device(m).order(Lane::exchange, Lane::compute);
      device(m).order(Lane::compute, Lane::exchange);
      transfers.push_back(
          {.send = stations_[m].kv[parity(step)].as<void>(), .receive = stations_[m].kv[parity(step + 1)].as<void>()});
    }
    if (step + 1 < world_) {
      group_.communicator->shift(transfers, 2 * kv_bytes(shape_, tokens_here()));
    }
  }

  void pass_gradients_on(int step) {
    std::vector<Transfer> transfers;
    for (std::size_t m = 0; m < stations_.size(); ++m) {
      device(m).order(Lane::compute, Lane::exchange);
      transfers.push_back({.send = stations_[m].gradient[parity(step)].as<void>(),
                           .receive = stations_[m].gradient[parity(step + 1)].as<void>()});
    }
    group_.communicator->shift(transfers, 8 * kv_elements());
  }

  SequenceShape shape_;
  Group group_;
  int world_;
  std::vector<Station> stations_;
};

}  // namespace

std::unique_ptr<SequenceAttention> make_ring(const SequenceShape& shape, Group group) {
  return std::make_unique<Ring>(shape, std::move(group));
}

}  // namespace ulysim::calibration::cuda
