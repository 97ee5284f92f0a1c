#include "sim/workload/transformer.h"

#include "sim/base/check.h"

namespace ulysim::workload {
namespace {

std::int64_t norm_parameters(const Transformer& t, std::int64_t width) {
  return t.norms.bias ? 2 * width : width;
}

/// A linear map from `in` to `out` elements.
std::int64_t linear(std::int64_t in, std::int64_t out, bool bias) {
  return in * out + (bias ? out : 0);
}

std::int64_t mlp_parameters(const Transformer& t, std::int64_t width) {
  const std::int64_t ups = t.mlp_kind == MlpKind::gated ? 2 : 1;
  return ups * linear(t.hidden, width, t.biases.mlp) + linear(width, t.hidden, t.biases.mlp);
}

std::int64_t qk_norm_parameters(const Transformer& t) {
  switch (t.qk_norm) {
    case QkNorm::none:
    case QkNorm::weightless:
      return 0;
    case QkNorm::per_head:
      return 2 * norm_parameters(t, t.head_dim);
    case QkNorm::full_width:
      return norm_parameters(t, t.heads * t.head_dim) + norm_parameters(t, t.kv_heads * t.head_dim);
  }
  return 0;
}

/// arXiv 2405.04434, equations 9 to 19: down-projection, norm and up-projection of queries and of keys/values;
/// the rotary part of K is shared by all heads and comes straight from the hidden state.
std::int64_t mla_projections(const Transformer& t, const MlaSpec& mla) {
  const std::int64_t queries = t.heads * query_head_dim(t);
  std::int64_t sum = 0;
  if (mla.q_lora_rank.has_value()) {
    const std::int64_t rank = *mla.q_lora_rank;
    sum += linear(t.hidden, rank, t.biases.qkv) + norm_parameters(t, rank) + rank * queries;
  } else {
    sum += t.hidden * queries;
  }
  sum += linear(t.hidden, mla.kv_lora_rank + mla.qk_rope_head_dim, t.biases.qkv);
  sum += norm_parameters(t, mla.kv_lora_rank);
  sum += mla.kv_lora_rank * t.heads * (mla.qk_nope_head_dim + mla.v_head_dim);
  return sum;
}

std::int64_t attention_parameters(const Transformer& t) {
  std::int64_t sum = 0;
  if (t.mla.has_value()) {
    sum += mla_projections(t, *t.mla);
  } else {
    sum += linear(t.hidden, (t.heads + 2 * t.kv_heads) * t.head_dim, t.biases.qkv);
  }
  sum += linear(t.heads * value_head_dim(t), t.hidden, t.biases.output);
  sum += qk_norm_parameters(t);
  sum += t.attention_sinks ? t.heads : 0;
  return sum;
}

}  // namespace

std::int64_t query_head_dim(const Transformer& t) {
  return t.mla.has_value() ? t.mla->qk_nope_head_dim + t.mla->qk_rope_head_dim : t.head_dim;
}

std::int64_t value_head_dim(const Transformer& t) {
  return t.mla.has_value() ? t.mla->v_head_dim : t.head_dim;
}

LayerParameters layer_parameters(const Transformer& t, std::size_t layer) {
  ULYSIM_CHECK(layer < t.layer_specs.size(), "layer {} of {}", layer, t.layer_specs.size());
  LayerParameters result{};
  result.attention = attention_parameters(t);
  result.norms = t.norms.per_layer * norm_parameters(t, t.hidden);
  if (!t.layer_specs[layer].moe) {
    result.dense_mlp = mlp_parameters(t, t.ffn);
    return result;
  }
  ULYSIM_CHECK(t.moe.has_value(), "layer {} of {} is MoE but the model has no experts", layer, t.name);
  result.experts = t.moe->experts * mlp_parameters(t, t.moe->expert_ffn);
  result.shared_experts = t.moe->shared_experts * mlp_parameters(t, t.moe->shared_ffn);
  result.router = linear(t.hidden, t.moe->experts, t.moe->router_bias);
  return result;
}

ParameterCount count_parameters(const Transformer& t) {
  ParameterCount count{};
  count.embedding = t.vocab * t.hidden;
  count.position_embedding = t.learned_positions * t.hidden;
  std::int64_t idle = 0;
  for (std::size_t layer = 0; layer < t.layer_specs.size(); ++layer) {
    const LayerParameters parameters = layer_parameters(t, layer);
    count.layers += parameters.total();
    if (t.layer_specs[layer].moe) {
      idle += parameters.experts / t.moe->experts * (t.moe->experts - t.moe->top_k);
    }
  }
  count.final_norm = norm_parameters(t, t.hidden);
  count.head = (t.tied_embeddings ? 0 : t.vocab * t.hidden) + (t.biases.head ? t.vocab : 0);
  count.total = count.embedding + count.position_embedding + count.layers + count.final_norm + count.head;
  count.active = count.total - idle;
  return count;
}

std::vector<std::int64_t> ulysses_degrees(const Transformer& t) {
  std::vector<std::int64_t> degrees;
  for (std::int64_t p = 1; p <= t.heads; ++p) {
    if (t.heads % p == 0 && (t.kv_heads % p == 0 || p % t.kv_heads == 0)) {
      degrees.push_back(p);
    }
  }
  return degrees;
}

}  // namespace ulysim::workload
