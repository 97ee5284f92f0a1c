#include "sim/study/validate_convention.h"

#include <algorithm>
#include <array>

#include "sim/workload/token_set.h"
#include "sim/workload/training_step.h"

namespace ulysim::study {
namespace {

double real(std::int64_t value) {
  return static_cast<double>(value);
}

/// Multiply-adds of one token in the matrix products of a layer. Biases and norms are no matrix products.
double layer_weights(const workload::Transformer& m) {
  const double q = real(m.heads * m.head_dim);
  const double kv = real(m.kv_heads * m.head_dim);
  const double matrices = m.mlp_kind == workload::MlpKind::gated ? 3.0 : 2.0;
  return real(m.hidden) * (2.0 * q + 2.0 * kv + matrices * real(m.ffn));
}

/// Query–key pairs of one layer.
double pairs(const workload::LayerSpec& layer, std::int64_t tokens, Convention convention) {
  const double s = real(tokens);
  if (convention == Convention::full_x3 || convention == Convention::full_x4) {
    return s * s;
  }
  const workload::TokenSet all{{.first = 0, .end = tokens}};
  return real(workload::count_pairs(all, all, workload::mask_of(layer, {})));
}

}  // namespace

std::span<const std::string> convention_names() {
  static const std::array<std::string, 4> names{"causal-x3", "full-x3", "causal-x4", "full-x4"};
  return names;
}

double convention_flops(const workload::Transformer& model, std::int64_t tokens, Convention convention) {
  const double s = real(tokens);
  double layers = 0.0;  // forward
  for (const workload::LayerSpec& layer : model.layer_specs) {
    // Two products, Q·Kᵀ and P·V, of head_dim multiply-adds a pair and head.
    layers +=
        2.0 * s * layer_weights(model) + 4.0 * real(model.heads * model.head_dim) * pairs(layer, tokens, convention);
  }
  const double head = 2.0 * s * real(model.hidden) * real(model.vocab);
  const bool recomputed = convention == Convention::causal_x4 || convention == Convention::full_x4;
  return (recomputed ? 4.0 : 3.0) * layers + 3.0 * head;
}

}  // namespace ulysim::study
