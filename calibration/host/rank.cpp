#include "calibration/host/rank.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "calibration/host/collectives.h"
#include "calibration/host/kernels.h"
#include "calibration/host/sequence_parallel.h"
#include "calibration/host/waiting.h"
#include "sim/base/check.h"

namespace ulysim::calibration::host {
namespace {

using Buffer = std::vector<float>;

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

Buffer poisoned(std::size_t count) {
  return Buffer(count, kPoison);
}

Buffer seeded(Tensor tensor, std::int64_t token, std::size_t count) {
  Buffer buffer(count);
  fill_input(tensor, token, 1, static_cast<std::int64_t>(count), buffer.data());
  return buffer;
}

/// Each kind of probe: buffers made by the constructor, `run` is what is timed, `errors` compares the last run.
class GemmWork {
 public:
  GemmWork(const GemmProbe& probe, const Transport&)
      : probe_(probe),
        a_(seeded(Tensor::queries, 0, static_cast<std::size_t>(probe.m * probe.k))),
        b_(seeded(Tensor::keys, 0, static_cast<std::size_t>(probe.k * probe.n))),
        c_(poisoned(static_cast<std::size_t>(probe.m * probe.n))) {}
  void run() { gemm(probe_, a_.data(), b_.data(), c_.data()); }
  [[nodiscard]] std::vector<ErrorNorm> errors() const {
    std::vector<double> reference(c_.size());
    for (std::int64_t i = 0; i < probe_.m; ++i) {
      for (std::int64_t k = 0; k < probe_.k; ++k) {
        const auto left = static_cast<double>(a_[static_cast<std::size_t>(i * probe_.k + k)]);
        for (std::int64_t j = 0; j < probe_.n; ++j) {
          reference[static_cast<std::size_t>(i * probe_.n + j)] +=
              left * static_cast<double>(b_[static_cast<std::size_t>(k * probe_.n + j)]);
        }
      }
    }
    return {error_norm(c_.data(), reference, 0, probe_.m, probe_.n)};
  }

 private:
  GemmProbe probe_;
  Buffer a_, b_, c_;
};

/// The kernel alone, as one rank of a single-rank Ulysses would call it. Queries and keys are the same tokens.
class AttentionWork {
 public:
  AttentionWork(const AttentionProbe& probe, const Transport&)
      : probe_(probe),
        shape_{probe.heads, probe.kv_heads, probe.head_dim, probe.mask},
        queries_(static_cast<std::size_t>(probe.queries * shape_.query_width())),
        out_gradient_(queries_.size()),
        keys_(static_cast<std::size_t>(probe.queries * shape_.kv_width())),
        values_(keys_.size()),
        out_(queries_.size()),
        queries_gradient_(queries_.size()),
        keys_gradient_(keys_.size()),
        values_gradient_(keys_.size()),
        log_sum_exp_(static_cast<std::size_t>(probe.queries * probe.heads)),
        sum_(log_sum_exp_.size()),
        delta_(log_sum_exp_.size()) {
    fill_input(Tensor::queries, 0, probe.queries, shape_.query_width(), queries_.data());
    fill_input(Tensor::keys, 0, probe.queries, shape_.kv_width(), keys_.data());
    fill_input(Tensor::values, 0, probe.queries, shape_.kv_width(), values_.data());
    fill_input(Tensor::out_gradient, 0, probe.queries, shape_.query_width(), out_gradient_.data());
    if (probe.pass == Pass::backward) {
      forward();
    }
  }

  void run() {
    if (probe_.pass == Pass::forward) {
      forward();
    } else {
      backward();
    }
  }

  [[nodiscard]] std::vector<ErrorNorm> errors() const {
    const ReferenceAttention reference = reference_attention(shape_, probe_.queries);
    if (probe_.pass == Pass::forward) {
      return {error_norm(out_.data(), reference.out, 0, probe_.queries, shape_.query_width())};
    }
    return {error_norm(queries_gradient_.data(), reference.queries_gradient, 0, probe_.queries, shape_.query_width()),
            error_norm(keys_gradient_.data(), reference.keys_gradient, 0, probe_.queries, shape_.kv_width()),
            error_norm(values_gradient_.data(), reference.values_gradient, 0, probe_.queries, shape_.kv_width())};
  }

 private:
  [[nodiscard]] ConstTokens all(const Buffer& buffer) const { return {buffer.data(), probe_.queries, 0}; }

  void forward() {
    const Tokens out{out_.data(), probe_.queries, 0};
    const SoftmaxState state{log_sum_exp_, sum_};
    start_forward(shape_, out, state);
    attention_forward(shape_, all(queries_), all(keys_), all(values_), out, state);
    finish_forward(shape_, out, state);
  }

  void backward() {
    for (Buffer* gradient : {&queries_gradient_, &keys_gradient_, &values_gradient_}) {
      std::memset(gradient->data(), 0, gradient->size() * sizeof(float));
    }
    row_delta(shape_, all(out_), all(out_gradient_), delta_);
    attention_backward(shape_,
                       {.queries = all(queries_),
                        .keys = all(keys_),
                        .values = all(values_),
                        .out_gradient = all(out_gradient_),
                        .log_sum_exp = log_sum_exp_,
                        .delta = delta_},
                       {queries_gradient_.data(), keys_gradient_.data(), values_gradient_.data()});
  }

  AttentionProbe probe_;
  HeadShape shape_;
  Buffer queries_, out_gradient_, keys_, values_, out_, queries_gradient_, keys_gradient_, values_gradient_;
  Buffer log_sum_exp_, sum_, delta_;
};

class CopyWork {
 public:
  CopyWork(const CopyProbe& probe, const Transport&)
      : from_(seeded(Tensor::other, 0, static_cast<std::size_t>(probe.bytes) / sizeof(float))),
        to_(poisoned(from_.size())) {}
  void run() { std::memcpy(to_.data(), from_.data(), from_.size() * sizeof(float)); }
  [[nodiscard]] std::vector<ErrorNorm> errors() const {
    const std::vector<double> reference(from_.begin(), from_.end());
    return {error_norm(to_.data(), reference, 0, 1, static_cast<std::int64_t>(to_.size()))};
  }

 private:
  Buffer from_, to_;
};

/// The input of rank r is row r of a seeded matrix, so that every rank knows what the others send.
class CollectiveWork {
 public:
  CollectiveWork(const CollectiveProbe& probe, Transport& transport)
      : collective_(probe.collective),
        transport_(&transport),
        ranks_(static_cast<std::size_t>(transport.size())),
        block_(static_cast<std::size_t>(probe.bytes) / sizeof(float) / ranks_) {
    const std::size_t whole = block_ * ranks_;
    const bool sends_block = collective_ == Collective::all_gather;
    const bool receives_block = collective_ == Collective::reduce_scatter;
    send_ = seeded(Tensor::other, transport.rank(), sends_block ? block_ : whole);
    receive_ = poisoned(receives_block ? block_ : whole);
    work_ = Buffer(receives_block ? whole : 0);
  }

  void run() {
    switch (collective_) {
      case Collective::all_to_all:
        return all_to_all(*transport_, send_, receive_);
      case Collective::all_gather:
        return all_gather(*transport_, send_, receive_);
      case Collective::reduce_scatter:
        return reduce_scatter(*transport_, send_, receive_, work_);
      case Collective::send_recv:
        return shift(*transport_, send_, receive_);
      default:
        ULYSIM_CHECK(false, "the host has no {}", info_of(collective_).name);
    }
  }

  [[nodiscard]] std::vector<ErrorNorm> errors() const {
    std::vector<double> reference(receive_.size());
    const auto rank = static_cast<std::size_t>(transport_->rank());
    for (std::size_t i = 0; i < reference.size(); ++i) {
      switch (collective_) {
        case Collective::all_to_all:
          reference[i] = sent(i / block_, rank * block_ + i % block_);
          break;
        case Collective::all_gather:
          reference[i] = sent(i / block_, i % block_);
          break;
        case Collective::send_recv:
          reference[i] = sent((rank + ranks_ - 1) % ranks_, i);
          break;
        case Collective::reduce_scatter:
          for (std::size_t r = 0; r < ranks_; ++r) {
            reference[i] += sent(r, rank * block_ + i);
          }
          break;
        default:
          ULYSIM_CHECK(false, "the host has no {}", info_of(collective_).name);
      }
    }
    return {error_norm(receive_.data(), reference, 0, 1, static_cast<std::int64_t>(receive_.size()))};
  }

 private:
  static double sent(std::size_t rank, std::size_t element) {
    return static_cast<double>(
        input_element(Tensor::other, static_cast<std::int64_t>(rank), static_cast<std::int64_t>(element)));
  }

  Collective collective_;
  Transport* transport_;
  std::size_t ranks_;
  std::size_t block_;
  Buffer send_, receive_, work_;
};

class LayerWork {
 public:
  LayerWork(const LayerProbe& probe, Transport& transport) : probe_(probe), layer_(make_layer(probe, transport)) {}
  void run() {
    layer_->forward();
    layer_->backward();
  }
  [[nodiscard]] std::vector<ErrorNorm> errors() const {
    const HeadShape shape{probe_.heads, probe_.kv_heads, probe_.head_dim, probe_.mask};
    return layer_->errors(reference_attention(shape, probe_.tokens));
  }

 private:
  LayerProbe probe_;
  std::unique_ptr<LayerAttention> layer_;
};

GemmWork work_of(const GemmProbe& probe, Transport& transport) {
  return {probe, transport};
}
AttentionWork work_of(const AttentionProbe& probe, Transport& transport) {
  return {probe, transport};
}
CopyWork work_of(const CopyProbe& probe, Transport& transport) {
  return {probe, transport};
}
CollectiveWork work_of(const CollectiveProbe& probe, Transport& transport) {
  return {probe, transport};
}
LayerWork work_of(const LayerProbe& probe, Transport& transport) {
  return {probe, transport};
}

}  // namespace

std::vector<double> Rank::measure(const Probe& probe, Repetitions repetitions) {
  return std::visit(
      [&](const auto& kind) {
        auto work = work_of(kind, *transport_);
        std::vector<double> instants;
        for (int i = 0; i < repetitions.warm_up + repetitions.timed; ++i) {
          barrier_.wait();
          const double start = now_seconds();
          work.run();
          const double end = now_seconds();
          if (i >= repetitions.warm_up) {
            instants.push_back(start);
            instants.push_back(end);
          }
        }
        return instants;
      },
      probe);
}

std::vector<ErrorNorm> Rank::verify(const Probe& probe) {
  return std::visit(
      [&](const auto& kind) {
        auto work = work_of(kind, *transport_);
        // Twice: state left over from the first run must not reach the second.
        work.run();
        work.run();
        return work.errors();
      },
      probe);
}

}  // namespace ulysim::calibration::host
