// Compiled for the processor at hand (CMakeLists.txt): no other source of a program that links this may include Eigen,
// or the linker may keep the instructions of either for both.
#include "calibration/host/kernels.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace ulysim::calibration::host {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstHead = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
using Head = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;

constexpr std::int64_t kTileQueries = 64;
constexpr std::int64_t kTileKeys = 128;
// Finite, so that differences of two of them are no NaN; below every score.
constexpr float kMasked = -1e30F;
constexpr float kNothingSeen = -1e29F;

/// Part of a token tensor: `count` tokens from `first`, one head.
struct Slice {
  std::int64_t first{};
  std::int64_t count{};
  std::int64_t head{};
  std::int64_t width{};  ///< floats per token
  std::int64_t head_dim{};
};

ConstHead part(const float* data, const Slice& s) {
  return {data + s.first * s.width + s.head * s.head_dim, s.count, s.head_dim, Eigen::OuterStride<>(s.width)};
}

Head part(float* data, const Slice& s) {
  return {data + s.first * s.width + s.head * s.head_dim, s.count, s.head_dim, Eigen::OuterStride<>(s.width)};
}

/// A rectangle of scores, in positions of the whole sequence.
struct Tile {
  std::int64_t first_query{};
  std::int64_t queries{};
  std::int64_t first_key{};
  std::int64_t keys{};
  [[nodiscard]] bool hidden() const { return first_key > first_query + queries - 1; }
  [[nodiscard]] bool crosses_diagonal() const { return first_key + keys - 1 > first_query; }
};

/// Calls `work(i, rows, j, columns)` for every tile that the mask leaves, queries outermost.
template <class Work>
void for_each_tile(const HeadShape& shape, ConstTokens queries, ConstTokens keys, Work work) {
  for (std::int64_t i = 0; i < queries.count; i += kTileQueries) {
    const std::int64_t rows = std::min(kTileQueries, queries.count - i);
    for (std::int64_t j = 0; j < keys.count; j += kTileKeys) {
      const std::int64_t columns = std::min(kTileKeys, keys.count - j);
      const Tile tile{queries.position + i, rows, keys.position + j, columns};
      if (shape.mask == Mask::full || !tile.hidden()) {
        work(i, rows, j, columns);
      }
    }
  }
}

/// Scaled scores of one tile, masked ones far below all others.
template <class Scores>
void scores_of(const HeadShape& shape, const ConstHead& q, const ConstHead& k, const Tile& tile, Scores scores) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  scores.noalias() = scale * (q * k.transpose());
  if (shape.mask == Mask::full || !tile.crosses_diagonal()) {
    return;
  }
  for (std::int64_t a = 0; a < tile.queries; ++a) {
    const std::int64_t seen = std::clamp<std::int64_t>(tile.first_query + a - tile.first_key + 1, 0, tile.keys);
    scores.row(a).tail(tile.keys - seen).setConstant(kMasked);
  }
}

}  // namespace

void start_forward(const HeadShape& shape, Tokens out, SoftmaxState state) {
  std::fill_n(out.data, out.count * shape.query_width(), 0.0F);
  std::fill(state.largest.begin(), state.largest.end(), kMasked);
  std::fill(state.sum.begin(), state.sum.end(), 0.0F);
}

void attention_forward(const HeadShape& shape, ConstTokens queries, ConstTokens keys, ConstTokens values, Tokens out,
                       SoftmaxState state) {
  const std::int64_t per_kv = shape.heads / shape.kv_heads;
  Matrix tile_scores(kTileQueries, kTileKeys);
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    for_each_tile(shape, queries, keys, [&](std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) {
      const Slice q{i, rows, h, shape.query_width(), shape.head_dim};
      const Slice k{j, columns, h / per_kv, shape.kv_width(), shape.head_dim};
      const Tile tile{queries.position + i, rows, keys.position + j, columns};
      auto scores = tile_scores.topLeftCorner(rows, columns);
      scores_of(shape, part(queries.data, q), part(keys.data, k), tile, scores);
      Head o = part(out.data, q);
      for (std::int64_t a = 0; a < rows; ++a) {
        const auto at = static_cast<std::size_t>(h * queries.count + i + a);
        auto row = scores.row(a).array();
        const float largest = std::max(state.largest[at], row.maxCoeff());
        if (largest < kNothingSeen) {
          row.setZero();
          continue;
        }
        const float shrink = std::exp(state.largest[at] - largest);
        row = (row - largest).exp();
        state.sum[at] = state.sum[at] * shrink + row.sum();
        state.largest[at] = largest;
        o.row(a) *= shrink;
      }
      o.noalias() += scores * part(values.data, k);
    });
  }
}

void finish_forward(const HeadShape& shape, Tokens out, SoftmaxState state) {
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    Head o = part(out.data, {0, out.count, h, shape.query_width(), shape.head_dim});
    for (std::int64_t i = 0; i < out.count; ++i) {
      const auto at = static_cast<std::size_t>(h * out.count + i);
      o.row(i) /= state.sum[at];
      state.largest[at] += std::log(state.sum[at]);
    }
  }
}

void row_delta(const HeadShape& shape, ConstTokens out, ConstTokens out_gradient, std::span<float> delta) {
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    const Slice all{0, out.count, h, shape.query_width(), shape.head_dim};
    const ConstHead o = part(out.data, all);
    const ConstHead g = part(out_gradient.data, all);
    for (std::int64_t i = 0; i < out.count; ++i) {
      delta[static_cast<std::size_t>(h * out.count + i)] = o.row(i).dot(g.row(i));
    }
  }
}

void attention_backward(const HeadShape& shape, const BackwardInput& input, Gradients gradients) {
  const std::int64_t per_kv = shape.heads / shape.kv_heads;
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  Matrix tile_probabilities(kTileQueries, kTileKeys);
  Matrix tile_gradients(kTileQueries, kTileKeys);
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    for_each_tile(shape, input.queries, input.keys,
                  [&](std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) {
                    const Slice q{i, rows, h, shape.query_width(), shape.head_dim};
                    const Slice k{j, columns, h / per_kv, shape.kv_width(), shape.head_dim};
                    const Tile tile{input.queries.position + i, rows, input.keys.position + j, columns};
                    const ConstHead query = part(input.queries.data, q);
                    const ConstHead key = part(input.keys.data, k);
                    const ConstHead out_gradient = part(input.out_gradient.data, q);
                    auto p = tile_probabilities.topLeftCorner(rows, columns);
                    auto s = tile_gradients.topLeftCorner(rows, columns);
                    scores_of(shape, query, key, tile, p);
                    const auto first = static_cast<std::size_t>(h * input.queries.count + i);
                    for (std::int64_t a = 0; a < rows; ++a) {
                      p.row(a) = (p.row(a).array() - input.log_sum_exp[first + static_cast<std::size_t>(a)]).exp();
                    }
                    part(gradients.values, k).noalias() += p.transpose() * out_gradient;
                    s.noalias() = out_gradient * part(input.values.data, k).transpose();
                    for (std::int64_t a = 0; a < rows; ++a) {
                      const float delta = input.delta[first + static_cast<std::size_t>(a)];
                      s.row(a).array() = (s.row(a).array() - delta) * p.row(a).array() * scale;
                    }
                    part(gradients.queries, q).noalias() += s * key;
                    part(gradients.keys, k).noalias() += s.transpose() * query;
                  });
  }
}

void gemm(const GemmProbe& size, const float* a, const float* b, float* c) {
  const Eigen::Map<const Matrix> left(a, size.m, size.k);
  const Eigen::Map<const Matrix> right(b, size.k, size.n);
  Eigen::Map<Matrix> product(c, size.m, size.n);
  product.noalias() = left * right;
}

std::int64_t computed_pairs(const HeadShape& shape, ConstTokens queries, ConstTokens keys) {
  std::int64_t pairs = 0;
  for_each_tile(shape, queries, keys,
                [&](std::int64_t, std::int64_t rows, std::int64_t, std::int64_t columns) { pairs += rows * columns; });
  return pairs;
}

}  // namespace ulysim::calibration::host
