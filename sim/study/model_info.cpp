#include <fmt/format.h>

#include "sim/study/study.h"

namespace ulysim::study {

results::ModelInfo model_info(const workload::Transformer& model) {
  const workload::ParameterCount count = workload::count_parameters(model);
  results::ModelInfo info{.name = model.name,
                          .model_type = model.model_type,
                          .parameters = count.total,
                          .active_parameters = count.active,
                          .layers = model.layers,
                          .hidden = model.hidden,
                          .heads = model.heads,
                          .kv_heads = model.kv_heads,
                          .head_dim = model.head_dim,
                          .ffn = model.ffn,
                          .vocab = model.vocab,
                          .max_positions = model.max_positions,
                          .tied_embeddings = model.tied_embeddings,
                          .ulysses_degrees = workload::ulysses_degrees(model)};
  if (model.mla) {
    info.attention = "multi-head latent";
  } else if (model.kv_heads == model.heads) {
    info.attention = "multi-head";
  } else if (model.kv_heads == 1) {
    info.attention = "multi-query";
  } else {
    info.attention = fmt::format("grouped-query ({} of {})", model.kv_heads, model.heads);
  }
  info.mlp = model.mlp_kind == workload::MlpKind::gated ? "gated" : "plain";
  if (model.moe) {
    info.mlp = fmt::format("{} experts, {} a token", model.moe->experts, model.moe->top_k);
  }
  return info;
}

}  // namespace ulysim::study
