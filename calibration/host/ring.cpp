#include <array>
#include <cstring>

#include "calibration/host/collectives.h"
#include "calibration/host/sequence_parallel.h"

namespace ulysim::calibration::host {
namespace {

using Buffer = std::vector<float>;

Buffer zeros(std::int64_t count) {
  return Buffer(static_cast<std::size_t>(count), 0.0F);
}

constexpr std::size_t kChunks = 2;  ///< of every rank, the lower first

class Ring final : public LayerAttention {
 public:
  Ring(const LayerProbe& probe, Transport& transport)
      : transport_(&transport),
        ranks_(transport.size()),
        chunk_(probe.tokens / ranks_ / 2),
        shape_{probe.heads, probe.kv_heads, probe.head_dim, probe.mask},
        wide_(2 * chunk_ * shape_.query_width()),
        narrow_(2 * chunk_ * shape_.kv_width()) {
    for (std::size_t c = 0; c < kChunks; ++c) {
      const std::int64_t position = position_of(transport.rank(), c);
      fill_input(Tensor::queries, position, chunk_, shape_.query_width(), queries_.data() + query_offset(c));
      fill_input(Tensor::out_gradient, position, chunk_, shape_.query_width(), out_gradient_.data() + query_offset(c));
      fill_input(Tensor::keys, position, chunk_, shape_.kv_width(), keys_values_.data() + kv_offset(c));
      fill_input(Tensor::values, position, chunk_, shape_.kv_width(), keys_values_.data() + narrow_ + kv_offset(c));
    }
  }

  void forward() override {
    travelling_ = keys_values_;
    for (std::size_t c = 0; c < kChunks; ++c) {
      start_forward(shape_, out_chunk(c), state(c));
    }
    for (int step = 0; step < ranks_; ++step) {
      const int owner = owner_at(step);
      for_each_pair(owner, [&](std::size_t q, std::size_t k) {
        attention_forward(shape_, query_chunk(queries_, q), kv_chunk(0, owner, k), kv_chunk(narrow_, owner, k),
                          out_chunk(q), state(q));
      });
      if (step + 1 < ranks_) {
        rotate(travelling_, arriving_);
      }
    }
    for (std::size_t c = 0; c < kChunks; ++c) {
      finish_forward(shape_, out_chunk(c), state(c));
    }
  }

  void backward() override {
    travelling_ = keys_values_;
    std::memset(queries_gradient_.data(), 0, queries_gradient_.size() * sizeof(float));
    std::memset(gradients_.data(), 0, gradients_.size() * sizeof(float));
    for (std::size_t c = 0; c < kChunks; ++c) {
      row_delta(shape_, query_chunk(out_, c), query_chunk(out_gradient_, c), rows(delta_, c));
    }
    for (int step = 0; step < ranks_; ++step) {
      const int owner = owner_at(step);
      for_each_pair(owner, [&](std::size_t q, std::size_t k) {
        attention_backward(shape_,
                           {.queries = query_chunk(queries_, q),
                            .keys = kv_chunk(0, owner, k),
                            .values = kv_chunk(narrow_, owner, k),
                            .out_gradient = query_chunk(out_gradient_, q),
                            .log_sum_exp = rows(log_sum_exp_, q),
                            .delta = rows(delta_, q)},
                           {.queries = queries_gradient_.data() + query_offset(q),
                            .keys = gradients_.data() + kv_offset(k),
                            .values = gradients_.data() + narrow_ + kv_offset(k)});
      });
      if (step + 1 < ranks_) {
        rotate(travelling_, arriving_);
      }
      // One step more than K and V: after `ranks` steps a gradient is home.
      rotate(gradients_, arriving_);
    }
  }

  [[nodiscard]] std::vector<ErrorNorm> errors(const ReferenceAttention& reference) const override {
    std::vector<ErrorNorm> sums(4);
    for (std::size_t c = 0; c < kChunks; ++c) {
      const std::int64_t position = position_of(transport_->rank(), c);
      const std::int64_t wide = shape_.query_width();
      const std::int64_t narrow = shape_.kv_width();
      sums[0] += error_norm(out_.data() + query_offset(c), reference.out, position, chunk_, wide);
      sums[1] +=
          error_norm(queries_gradient_.data() + query_offset(c), reference.queries_gradient, position, chunk_, wide);
      sums[2] += error_norm(gradients_.data() + kv_offset(c), reference.keys_gradient, position, chunk_, narrow);
      sums[3] +=
          error_norm(gradients_.data() + narrow_ + kv_offset(c), reference.values_gradient, position, chunk_, narrow);
    }
    return sums;
  }

 private:
  [[nodiscard]] std::int64_t position_of(int rank, std::size_t chunk) const {
    return (chunk == 0 ? rank : 2 * ranks_ - 1 - rank) * chunk_;
  }
  /// Whose K and V are here after so many steps.
  [[nodiscard]] int owner_at(int step) const { return (transport_->rank() - step + ranks_) % ranks_; }
  [[nodiscard]] std::int64_t query_offset(std::size_t chunk) const {
    return static_cast<std::int64_t>(chunk) * chunk_ * shape_.query_width();
  }
  [[nodiscard]] std::int64_t kv_offset(std::size_t chunk) const {
    return static_cast<std::int64_t>(chunk) * chunk_ * shape_.kv_width();
  }
  [[nodiscard]] ConstTokens query_chunk(const Buffer& buffer, std::size_t c) const {
    return {buffer.data() + query_offset(c), chunk_, position_of(transport_->rank(), c)};
  }
  [[nodiscard]] Tokens out_chunk(std::size_t c) {
    return {out_.data() + query_offset(c), chunk_, position_of(transport_->rank(), c)};
  }
  [[nodiscard]] ConstTokens kv_chunk(std::int64_t tensor, int owner, std::size_t c) const {
    return {travelling_.data() + tensor + kv_offset(c), chunk_, position_of(owner, c)};
  }
  [[nodiscard]] std::span<float> rows(Buffer& buffer, std::size_t c) const {
    const auto count = static_cast<std::size_t>(chunk_ * shape_.heads);
    return std::span(buffer).subspan(c * count, count);
  }
  [[nodiscard]] SoftmaxState state(std::size_t c) { return {rows(log_sum_exp_, c), rows(sum_, c)}; }

  /// Every (query chunk, key chunk) that the mask does not hide whole.
  template <class Work>
  void for_each_pair(int owner, Work work) const {
    for (std::size_t q = 0; q < kChunks; ++q) {
      for (std::size_t k = 0; k < kChunks; ++k) {
        if (shape_.mask == Mask::full || position_of(owner, k) <= position_of(transport_->rank(), q)) {
          work(q, k);
        }
      }
    }
  }

  void rotate(Buffer& buffer, Buffer& spare) {
    shift(*transport_, buffer, spare);
    buffer.swap(spare);
  }

  Transport* transport_;
  int ranks_;
  std::int64_t chunk_;
  HeadShape shape_;
  std::int64_t wide_;
  std::int64_t narrow_;
  Buffer queries_ = zeros(wide_), out_ = zeros(wide_), out_gradient_ = zeros(wide_), queries_gradient_ = zeros(wide_);
  // K then V, each [chunk][token][kv_width]; so their gradients.
  Buffer keys_values_ = zeros(2 * narrow_), travelling_ = zeros(2 * narrow_), arriving_ = zeros(2 * narrow_),
         gradients_ = zeros(2 * narrow_);
  // [chunk][head][token]
  Buffer log_sum_exp_ = zeros(2 * chunk_ * shape_.heads), sum_ = zeros(2 * chunk_ * shape_.heads),
         delta_ = zeros(2 * chunk_ * shape_.heads);
};

}  // namespace

std::unique_ptr<LayerAttention> make_ring(const LayerProbe& probe, Transport& transport) {
  return std::make_unique<Ring>(probe, transport);
}

}  // namespace ulysim::calibration::host
