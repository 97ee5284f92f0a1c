#include "calibration/host/reference.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/mix.h"

namespace ulysim::calibration::host {
namespace {

/// One query head against all keys.
class HeadReference {
 public:
  HeadReference(const HeadShape& shape, std::int64_t tokens, std::int64_t head)
      : shape_(shape), tokens_(tokens), head_(head), kv_head_(head / (shape.heads / shape.kv_heads)) {
    for (const Tensor tensor : {Tensor::queries, Tensor::keys, Tensor::values, Tensor::out_gradient}) {
      const bool of_keys = tensor == Tensor::keys || tensor == Tensor::values;
      std::vector<double>& elements = inputs_.at(static_cast<std::size_t>(tensor));
      for (std::int64_t i = 0; i < tokens; ++i) {
        for (std::int64_t c = 0; c < shape.head_dim; ++c) {
          const std::int64_t element = (of_keys ? kv_head_ : head_) * shape.head_dim + c;
          elements.push_back(static_cast<double>(input_element(tensor, i, element)));
        }
      }
    }
  }

  void add_to(ReferenceAttention& result) const {
    std::vector<double> probabilities(static_cast<std::size_t>(tokens_));
    std::vector<double> gradients(static_cast<std::size_t>(tokens_));
    for (std::int64_t i = 0; i < tokens_; ++i) {
      const std::int64_t seen = shape_.mask == Mask::causal ? i + 1 : tokens_;
      softmax_row(i, seen, probabilities);
      double delta = 0.0;
      for (std::int64_t c = 0; c < shape_.head_dim; ++c) {
        double sum = 0.0;
        for (std::int64_t j = 0; j < seen; ++j) {
          sum += probabilities[index(j)] * input(Tensor::values, j, c);
        }
        result.out[query_at(i, c)] = sum;
        delta += sum * input(Tensor::out_gradient, i, c);
      }
      for (std::int64_t j = 0; j < seen; ++j) {
        double dp = 0.0;
        for (std::int64_t c = 0; c < shape_.head_dim; ++c) {
          dp += input(Tensor::out_gradient, i, c) * input(Tensor::values, j, c);
        }
        gradients[index(j)] = probabilities[index(j)] * (dp - delta) / std::sqrt(static_cast<double>(shape_.head_dim));
      }
      for (std::int64_t j = 0; j < seen; ++j) {
        for (std::int64_t c = 0; c < shape_.head_dim; ++c) {
          result.queries_gradient[query_at(i, c)] += gradients[index(j)] * input(Tensor::keys, j, c);
          result.keys_gradient[kv_at(j, c)] += gradients[index(j)] * input(Tensor::queries, i, c);
          result.values_gradient[kv_at(j, c)] += probabilities[index(j)] * input(Tensor::out_gradient, i, c);
        }
      }
    }
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] std::size_t query_at(std::int64_t token, std::int64_t c) const {
    return index(token * shape_.query_width() + head_ * shape_.head_dim + c);
  }
  [[nodiscard]] std::size_t kv_at(std::int64_t token, std::int64_t c) const {
    return index(token * shape_.kv_width() + kv_head_ * shape_.head_dim + c);
  }
  [[nodiscard]] double input(Tensor tensor, std::int64_t token, std::int64_t c) const {
    return inputs_[static_cast<std::size_t>(tensor)][index(token * shape_.head_dim + c)];
  }

  void softmax_row(std::int64_t i, std::int64_t seen, std::vector<double>& row) const {
    double largest = -1e300;
    for (std::int64_t j = 0; j < seen; ++j) {
      double score = 0.0;
      for (std::int64_t c = 0; c < shape_.head_dim; ++c) {
        score += input(Tensor::queries, i, c) * input(Tensor::keys, j, c);
      }
      row[index(j)] = score / std::sqrt(static_cast<double>(shape_.head_dim));
      largest = std::max(largest, row[index(j)]);
    }
    double sum = 0.0;
    for (std::int64_t j = 0; j < seen; ++j) {
      row[index(j)] = std::exp(row[index(j)] - largest);
      sum += row[index(j)];
    }
    for (std::int64_t j = 0; j < seen; ++j) {
      row[index(j)] /= sum;
    }
  }

  HeadShape shape_;
  std::int64_t tokens_;
  std::int64_t head_;
  std::int64_t kv_head_;
  std::array<std::vector<double>, 4> inputs_{};  ///< by Tensor: [token][head_dim] of this head
};

}  // namespace

float input_element(Tensor tensor, std::int64_t token, std::int64_t element) {
  const std::uint64_t place = static_cast<std::uint64_t>(token) * 65536U + static_cast<std::uint64_t>(element);
  const std::uint64_t bits = mixed(place * 8U + static_cast<std::uint64_t>(tensor) + 1U);
  // 24 bits are exact in a float.
  return static_cast<float>(bits >> 40U) / 8388608.0F - 1.0F;
}

void fill_input(Tensor tensor, std::int64_t position, std::int64_t count, std::int64_t width, float* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < width; ++c) {
      out[i * width + c] = input_element(tensor, position + i, c);
    }
  }
}

ReferenceAttention reference_attention(const HeadShape& shape, std::int64_t tokens) {
  const auto wide = static_cast<std::size_t>(tokens * shape.query_width());
  const auto narrow = static_cast<std::size_t>(tokens * shape.kv_width());
  ReferenceAttention result{.out = std::vector<double>(wide),
                            .queries_gradient = std::vector<double>(wide),
                            .keys_gradient = std::vector<double>(narrow),
                            .values_gradient = std::vector<double>(narrow)};
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    HeadReference(shape, tokens, h).add_to(result);
  }
  return result;
}

ErrorNorm error_norm(const float* result, const std::vector<double>& reference, std::int64_t position,
                     std::int64_t count, std::int64_t width) {
  ErrorNorm norm;
  for (std::int64_t i = 0; i < count * width; ++i) {
    const double expected = reference.at(static_cast<std::size_t>(position * width + i));
    const double difference = static_cast<double>(result[i]) - expected;
    norm.difference += difference * difference;
    norm.reference += expected * expected;
  }
  return norm;
}

ErrorNorm& operator+=(ErrorNorm& sum, const ErrorNorm& part) {
  sum.difference += part.difference;
  sum.reference += part.reference;
  return sum;
}

double relative_error(const ErrorNorm& norm) {
  return std::sqrt(norm.difference / norm.reference);
}

}  // namespace ulysim::calibration::host
