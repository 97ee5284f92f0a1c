#include "sim/workload/hf_family.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "sim/base/named.h"

// Layouts and defaults of every family: huggingface/transformers, src/transformers/models/*/configuration_*.py and
// modeling_*.py; MPT: mosaicml/llm-foundry, models/mpt.

namespace ulysim::workload::hf {
namespace {

void adjust_llama(Reader& reader, Transformer& t) {
  t.biases.mlp = reader.map().optional<bool>("mlp_bias", false);
}

void adjust_gpt2(Reader&, Transformer& t) {
  t.learned_positions = t.max_positions;
}

void adjust_gpt_neox(Reader& reader, Transformer& t) {
  const bool parallel = reader.map().optional<bool>("use_parallel_residual", true);
  t.block_order = parallel ? BlockOrder::parallel : BlockOrder::sequential;
}

void adjust_falcon(Reader& reader, Transformer& t) {
  config::Mapping& map = reader.map();
  const bool grouped = map.optional<bool>("new_decoder_architecture", false);
  if (!grouped) {
    t.kv_heads = map.optional<bool>("multi_query", true) ? 1 : t.heads;
  }
  const bool parallel = grouped || map.optional<bool>("parallel_attn", true);
  t.block_order = parallel ? BlockOrder::parallel : BlockOrder::sequential;
  const std::int64_t parallel_norms =
      reader.size({"num_ln_in_parallel_attn"}, 2, grouped ? Size{2} : Size{1}).value_or(1);
  t.norms.per_layer = parallel ? parallel_norms : 2;
  const bool bias = map.optional<bool>("bias", false);
  t.biases = {.qkv = bias, .output = bias, .mlp = bias};
}

void adjust_mpt(Reader& reader, Transformer& t) {
  config::Mapping& map = reader.map();
  const bool bias = !map.optional<bool>("no_bias", true);
  t.biases = {.qkv = bias, .output = bias, .mlp = bias};
  t.norms.bias = bias;
  t.ffn = t.hidden * reader.size({"expansion_ratio"}, 256, 4).value_or(4);
  const config::Node* node = map.find("attn_config");
  const config::Node none{.kind = config::Node::Kind::mapping, .where = map.where()};
  Reader attention(node != nullptr ? *node : none, reader.root(), map.path_of("attn_config"), map.diagnostics());
  static const std::array<std::string, 3> kTypes{"multihead_attention", "multiquery_attention",
                                                 "grouped_query_attention"};
  const std::size_t type = attention.map().choice("attn_type", kTypes, 0);
  if (type == 1) {
    t.kv_heads = 1;
  } else if (type == 2) {
    t.kv_heads = attention.required({"kv_n_heads"}, kMostHeads).value_or(t.heads);
  }
  t.qk_norm = attention.map().optional<bool>("qk_ln", false) ? QkNorm::full_width : QkNorm::none;
  const bool rotary_or_alibi =
      attention.map().optional<bool>("alibi", true) || attention.map().optional<bool>("rope", false);
  const bool learned = map.optional<bool>("learned_pos_emb", !rotary_or_alibi);
  t.learned_positions = learned && !rotary_or_alibi ? t.max_positions : 0;
}

void adjust_deepseek(Reader& reader, Transformer& t) {
  const auto size = [&](std::string_view key, std::int64_t fallback) {
    return reader.size({key}, kMostWidth, fallback).value_or(fallback);
  };
  t.mla = MlaSpec{.q_lora_rank = reader.nullable("q_lora_rank", kMostWidth, 1536),
                  .kv_lora_rank = size("kv_lora_rank", 512),
                  .qk_nope_head_dim = size("qk_nope_head_dim", 128),
                  .qk_rope_head_dim = size("qk_rope_head_dim", 64),
                  .v_head_dim = size("v_head_dim", 128)};
  // `head_dim` in such files is the rotary part alone.
  t.head_dim = query_head_dim(t);
  t.kv_heads = t.heads;  // training expands the latents to keys and values of every head
}

constexpr Family kLlama{.attention_bias = AttentionBias::by_key, .max_positions = 2048, .adjust = adjust_llama};
constexpr Family kMistral{.windows = Windows::every_layer, .kv_heads = 8, .window = 4096, .max_positions = 131072};
constexpr Family kMixtral{
    .windows = Windows::every_layer, .experts = Experts::every_layer, .kv_heads = 8, .max_positions = 131072};
constexpr Family kQwen2{.attention_bias = AttentionBias::qkv,
                        .windows = Windows::upper_layers,
                        .kv_heads = 32,
                        .window = 4096,
                        .max_positions = 32768};
constexpr Family kQwen3{.qk_norm = QkNorm::per_head,
                        .attention_bias = AttentionBias::by_key,
                        .windows = Windows::upper_layers,
                        .kv_heads = 32,
                        .head_dim = 128,
                        .window = 4096,
                        .max_positions = 32768};
constexpr Family kQwen3Moe{.qk_norm = QkNorm::per_head,
                           .attention_bias = AttentionBias::by_key,
                           .windows = Windows::upper_layers,
                           .experts = Experts::sparse_step,
                           .kv_heads = 4,
                           .window = 4096,
                           .max_positions = 32768};
constexpr Family kGemma{.attention_bias = AttentionBias::by_key,
                        .tied = true,
                        .heads = 16,
                        .kv_heads = 16,
                        .head_dim = 256,
                        .vocab = 256000,
                        .max_positions = 8192};
constexpr Family kGemma2{.norms = {.per_layer = 4},
                         .attention_bias = AttentionBias::by_key,
                         .tied = true,
                         .windows = Windows::even_layers,
                         .heads = 8,
                         .kv_heads = 4,
                         .head_dim = 256,
                         .vocab = 256000,
                         .window = 4096,
                         .max_positions = 8192};
constexpr Family kGemma3{.norms = {.per_layer = 4},
                         .qk_norm = QkNorm::per_head,
                         .attention_bias = AttentionBias::by_key,
                         .tied = true,
                         .windows = Windows::all_but_every_sixth,
                         .heads = 8,
                         .kv_heads = 4,
                         .head_dim = 256,
                         .vocab = 262208,
                         .window = 4096,
                         .max_positions = 131072};
constexpr Family kPhi3{.windows = Windows::every_layer, .max_positions = 4096};
constexpr Family kGpt2{.mlp_kind = MlpKind::plain,
                       .norms = {.kind = NormKind::layer, .bias = true},
                       .attention_bias = AttentionBias::always,
                       .mlp_bias = true,
                       .tied = true,
                       .ffn_per_hidden = 4,
                       .max_positions = 1024,
                       .adjust = adjust_gpt2};
constexpr Family kGptNeox{.mlp_kind = MlpKind::plain,
                          .norms = {.kind = NormKind::layer, .bias = true},
                          .attention_bias = AttentionBias::by_key_default_on,
                          .mlp_bias = true,
                          .max_positions = 2048,
                          .adjust = adjust_gpt_neox};
constexpr Family kMpt{.mlp_kind = MlpKind::plain,
                      .norms = {.kind = NormKind::layer},
                      .tied = true,
                      .ffn_per_hidden = 4,
                      .max_positions = 2048,
                      .adjust = adjust_mpt};
constexpr Family kFalcon{.mlp_kind = MlpKind::plain,
                         .norms = {.kind = NormKind::layer, .bias = true},
                         .tied = true,
                         .ffn_per_hidden = 4,
                         .max_positions = 2048,
                         .adjust = adjust_falcon};
constexpr Family kDeepseekV3{.attention_bias = AttentionBias::by_key,
                             .experts = Experts::after_dense,
                             .max_positions = 4096,
                             .adjust = adjust_deepseek};
constexpr Family kGptOss{.attention_bias = AttentionBias::by_key_default_on,
                         .mlp_bias = true,
                         .sinks = true,
                         .windows = Windows::even_layers,
                         .experts = Experts::every_layer,
                         .kv_heads = 8,
                         .head_dim = 64,
                         .window = 128,
                         .max_positions = 131072};
constexpr Family kLlama4{.attention_bias = AttentionBias::by_key,
                         .windows = Windows::chunks,
                         .experts = Experts::interleaved,
                         .max_positions = 131072};

struct KnownType {
  std::string_view model_type{};
  const Family* family{};
};

// A multimodal name stands here for files that give the text model's keys at the top, or leave the type out of
// `text_config`.
constexpr std::array kKnownTypes{KnownType{"deepseek_v3", &kDeepseekV3},
                                 KnownType{"falcon", &kFalcon},
                                 KnownType{"gemma", &kGemma},
                                 KnownType{"gemma2", &kGemma2},
                                 KnownType{"gemma3", &kGemma3},
                                 KnownType{"gemma3_text", &kGemma3},
                                 KnownType{"gpt2", &kGpt2},
                                 KnownType{"gpt_neox", &kGptNeox},
                                 KnownType{"gpt_oss", &kGptOss},
                                 KnownType{"llama", &kLlama},
                                 KnownType{"llama4", &kLlama4},
                                 KnownType{"llama4_text", &kLlama4},
                                 KnownType{"mistral", &kMistral},
                                 KnownType{"mixtral", &kMixtral},
                                 KnownType{"mpt", &kMpt},
                                 KnownType{"phi3", &kPhi3},
                                 KnownType{"qwen2", &kQwen2},
                                 KnownType{"qwen2_5_vl", &kQwen2},
                                 KnownType{"qwen2_5_vl_text", &kQwen2},
                                 KnownType{"qwen2_vl", &kQwen2},
                                 KnownType{"qwen2_vl_text", &kQwen2},
                                 KnownType{"qwen3", &kQwen3},
                                 KnownType{"qwen3_moe", &kQwen3Moe},
                                 KnownType{"qwen3_vl", &kQwen3},
                                 KnownType{"qwen3_vl_moe", &kQwen3Moe},
                                 KnownType{"qwen3_vl_moe_text", &kQwen3Moe},
                                 KnownType{"qwen3_vl_text", &kQwen3}};

}  // namespace

std::vector<std::string> known_types() {
  std::vector<std::string> types;
  types.reserve(kKnownTypes.size());
  for (const KnownType& known : kKnownTypes) {
    types.emplace_back(known.model_type);
  }
  return types;
}

const Family* find_family(Reader& reader, Transformer& t) {
  const config::Node* type = reader.text().find("model_type");
  if (type == nullptr) {
    type = reader.root().find("model_type");
  }
  if (type == nullptr) {
    reader.map().error("model_type", fmt::format("'{}' is missing", reader.map().path_of("model_type")));
    return nullptr;
  }
  const auto name = config::read<std::string>(*type, "model_type", reader.map().diagnostics());
  if (!name.has_value()) {
    return nullptr;
  }
  t.model_type = *name;
  for (const KnownType& known : kKnownTypes) {
    if (known.model_type == *name) {
      return known.family;
    }
  }
  const std::vector<std::string> all = known_types();
  reader.map().error(*type, fmt::format("unknown model_type '{}'{}", *name, did_you_mean(*name, all)));
  return nullptr;
}

}  // namespace ulysim::workload::hf
