#include <cstring>

#include "calibration/host/collectives.h"
#include "calibration/host/sequence_parallel.h"

namespace ulysim::calibration::host {
namespace {

using Buffer = std::vector<float>;

Buffer zeros(std::int64_t count) {
  return Buffer(static_cast<std::size_t>(count), 0.0F);
}

class Ulysses final : public LayerAttention {
 public:
  Ulysses(const LayerProbe& probe, Transport& transport)
      : transport_(&transport),
        ranks_(transport.size()),
        tokens_(probe.tokens),
        local_(probe.tokens / ranks_),
        whole_{probe.heads, probe.kv_heads, probe.head_dim, probe.mask},
        share_{probe.heads / ranks_, probe.kv_heads / ranks_, probe.head_dim, probe.mask},
        // The same floats either way: local tokens with all heads, all tokens with a share of the heads.
        wide_(local_ * whole_.query_width()),
        narrow_(local_ * whole_.kv_width()) {
    const std::int64_t position = transport.rank() * local_;
    fill_input(Tensor::queries, position, local_, whole_.query_width(), queries_.data());
    fill_input(Tensor::keys, position, local_, whole_.kv_width(), keys_.data());
    fill_input(Tensor::values, position, local_, whole_.kv_width(), values_.data());
    fill_input(Tensor::out_gradient, position, local_, whole_.query_width(), out_gradient_.data());
  }

  void forward() override {
    to_heads(queries_, whole_.query_width(), head_queries_);
    to_heads(keys_, whole_.kv_width(), head_keys_);
    to_heads(values_, whole_.kv_width(), head_values_);
    const Tokens out{head_out_.data(), tokens_, 0};
    const SoftmaxState state{log_sum_exp_, sum_};
    start_forward(share_, out, state);
    attention_forward(share_, all(head_queries_), all(head_keys_), all(head_values_), out, state);
    finish_forward(share_, out, state);
    to_tokens(head_out_, whole_.query_width(), out_);
  }

  void backward() override {
    to_heads(out_gradient_, whole_.query_width(), head_out_gradient_);
    for (Buffer* gradient : {&head_queries_gradient_, &head_keys_gradient_, &head_values_gradient_}) {
      std::memset(gradient->data(), 0, gradient->size() * sizeof(float));
    }
    row_delta(share_, all(head_out_), all(head_out_gradient_), delta_);
    attention_backward(share_,
                       {.queries = all(head_queries_),
                        .keys = all(head_keys_),
                        .values = all(head_values_),
                        .out_gradient = all(head_out_gradient_),
                        .log_sum_exp = log_sum_exp_,
                        .delta = delta_},
                       {head_queries_gradient_.data(), head_keys_gradient_.data(), head_values_gradient_.data()});
    to_tokens(head_queries_gradient_, whole_.query_width(), queries_gradient_);
    to_tokens(head_keys_gradient_, whole_.kv_width(), keys_gradient_);
    to_tokens(head_values_gradient_, whole_.kv_width(), values_gradient_);
  }

  [[nodiscard]] std::vector<ErrorNorm> errors(const ReferenceAttention& reference) const override {
    const std::int64_t position = transport_->rank() * local_;
    const std::int64_t wide = whole_.query_width();
    const std::int64_t narrow = whole_.kv_width();
    return {error_norm(out_.data(), reference.out, position, local_, wide),
            error_norm(queries_gradient_.data(), reference.queries_gradient, position, local_, wide),
            error_norm(keys_gradient_.data(), reference.keys_gradient, position, local_, narrow),
            error_norm(values_gradient_.data(), reference.values_gradient, position, local_, narrow)};
  }

 private:
  [[nodiscard]] ConstTokens all(const Buffer& buffer) const { return {buffer.data(), tokens_, 0}; }

  /// [local token][width] → pack [peer][local token][width/ranks] → exchange → [token][width/ranks].
  void to_heads(const Buffer& from, std::int64_t width, Buffer& to) {
    const std::int64_t part = width / ranks_;
    for (std::int64_t peer = 0; peer < ranks_; ++peer) {
      for (std::int64_t i = 0; i < local_; ++i) {
        std::memcpy(packed_.data() + (peer * local_ + i) * part, from.data() + i * width + peer * part,
                    static_cast<std::size_t>(part) * sizeof(float));
      }
    }
    all_to_all(*transport_, std::span(packed_).first(from.size()), to);
  }

  /// The way back: exchange, then unpack.
  void to_tokens(const Buffer& from, std::int64_t width, Buffer& to) {
    const std::int64_t part = width / ranks_;
    all_to_all(*transport_, from, std::span(packed_).first(from.size()));
    for (std::int64_t peer = 0; peer < ranks_; ++peer) {
      for (std::int64_t i = 0; i < local_; ++i) {
        std::memcpy(to.data() + i * width + peer * part, packed_.data() + (peer * local_ + i) * part,
                    static_cast<std::size_t>(part) * sizeof(float));
      }
    }
  }

  Transport* transport_;
  std::int64_t ranks_;
  std::int64_t tokens_;
  std::int64_t local_;
  HeadShape whole_;
  HeadShape share_;
  std::int64_t wide_;
  std::int64_t narrow_;
  // A share of the tokens, all heads.
  Buffer queries_ = zeros(wide_), keys_ = zeros(narrow_), values_ = zeros(narrow_), out_ = zeros(wide_);
  Buffer out_gradient_ = zeros(wide_), queries_gradient_ = zeros(wide_), keys_gradient_ = zeros(narrow_),
         values_gradient_ = zeros(narrow_);
  Buffer packed_ = zeros(wide_);
  // All tokens, a share of the heads.
  Buffer head_queries_ = zeros(wide_), head_keys_ = zeros(narrow_), head_values_ = zeros(narrow_),
         head_out_ = zeros(wide_);
  Buffer head_out_gradient_ = zeros(wide_), head_queries_gradient_ = zeros(wide_), head_keys_gradient_ = zeros(narrow_),
         head_values_gradient_ = zeros(narrow_);
  Buffer log_sum_exp_ = zeros(tokens_ * share_.heads), sum_ = zeros(tokens_ * share_.heads),
         delta_ = zeros(tokens_ * share_.heads);
};

}  // namespace

std::unique_ptr<LayerAttention> make_ulysses(const LayerProbe& probe, Transport& transport) {
  return std::make_unique<Ulysses>(probe, transport);
}

}  // namespace ulysim::calibration::host
