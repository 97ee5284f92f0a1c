#include "sim/workload/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/named.h"
#include "sim/config/mapping.h"

// Layouts and defaults of every family: huggingface/transformers, src/transformers/models/*/configuration_*.py and
// modeling_*.py; MPT: mosaicml/llm-foundry, models/mpt.

namespace ulysim::workload {
namespace {

using Names = std::initializer_list<std::string_view>;
using Size = std::optional<std::int64_t>;

// Far above every model, and low enough that no product below leaves int64 (see `check_total`).
constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostHeads = 65'536;
constexpr std::int64_t kMostWidth = std::int64_t{1} << 24;
constexpr std::int64_t kMostVocab = std::int64_t{1} << 28;
constexpr std::int64_t kMostPositions = std::int64_t{1} << 31;
constexpr double kMostParameters = 4.0e18;

/// One mapping of the file; a size that cannot be read is reported once and then absent.
class Reader {
 public:
  Reader(const config::Node& text, const config::Node& root, std::string path, Diagnostics& diagnostics)
      : text_(&text), root_(&root), map_(text, std::move(path), diagnostics) {}

  [[nodiscard]] config::Mapping& map() { return map_; }
  [[nodiscard]] const config::Node& text() const { return *text_; }
  [[nodiscard]] const config::Node& root() const { return *root_; }
  [[nodiscard]] bool clean() { return errors() == 0; }
  [[nodiscard]] std::size_t errors() { return map_.diagnostics().list().size() - at_begin_; }

  /// The size under the first of `names` that is there (they are synonyms and must agree), else `fallback`.
  Size size(Names names, std::int64_t most, Size fallback) {
    Size value = fallback;
    std::string_view first{};
    for (const std::string_view name : names) {
      if (map_.find(name) == nullptr) {
        continue;
      }
      const Size here = integer(name, 1, most);
      if (!first.empty() && here.has_value() && value.has_value() && *here != *value) {
        map_.error(name,
                   fmt::format("'{}' is {} but '{}' is {}", map_.path_of(name), *here, map_.path_of(first), *value));
      }
      if (first.empty()) {
        first = name;
        value = here;
      }
    }
    return value;
  }

  Size required(Names names, std::int64_t most, Size fallback = {}) {
    const std::size_t before = errors();
    const Size value = size(names, most, fallback);
    if (!value.has_value() && errors() == before) {
      map_.error(*names.begin(), fmt::format("'{}' is missing", map_.path_of(*names.begin())));
    }
    return value;
  }

  /// A size for which an explicit null means "none" and absence means `fallback`.
  Size nullable(std::string_view name, std::int64_t most, Size fallback) {
    const config::Node* node = text_->find(name);
    if (node == nullptr) {
      return fallback;
    }
    return node->kind == config::Node::Kind::null ? Size{} : integer(name, 1, most);
  }

  Size integer(std::string_view name, std::int64_t low, std::int64_t most) {
    const std::size_t before = errors();
    const std::int64_t value = map_.integer(name, low, low, most);
    return errors() == before ? Size{value} : Size{};
  }

  /// A list of integers in [0, most]; absent or null: empty.
  std::vector<std::int64_t> integers(std::string_view name, std::int64_t most) {
    std::vector<std::int64_t> values;
    for (const config::Node* item : map_.items(name)) {
      const std::string path = fmt::format("{}[{}]", map_.path_of(name), values.size());
      const std::int64_t value = config::read<std::int64_t>(*item, path, map_.diagnostics()).value_or(0);
      if (value < 0 || value > most) {
        map_.error(*item, fmt::format("'{}' is {}; it must lie between 0 and {}", path, value, most));
      }
      values.push_back(value);
    }
    return values;
  }

  /// Like every list with one item a layer: reported when it has another length.
  void check_length(std::string_view name, std::size_t length, std::int64_t layers) {
    if (length != static_cast<std::size_t>(layers)) {
      map_.error(name, fmt::format("'{}' has {} items for {} layers", map_.path_of(name), length, layers));
    }
  }

 private:
  const config::Node* text_;
  const config::Node* root_;
  config::Mapping map_;
  std::size_t at_begin_{map_.diagnostics().list().size()};
};

enum class AttentionBias { never, qkv, always, by_key, by_key_default_on };
enum class Windows { none, every_layer, even_layers, all_but_every_sixth, upper_layers, chunks };
enum class Experts { none, every_layer, sparse_step, after_dense, interleaved };

/// What a model class fixes and what it assumes when a key is absent.
struct Family {
  MlpKind mlp_kind{MlpKind::gated};
  NormSpec norms{};
  QkNorm qk_norm{QkNorm::none};
  AttentionBias attention_bias{AttentionBias::never};
  bool mlp_bias{};
  bool tied{};
  bool sinks{};
  Windows windows{Windows::none};
  Experts experts{Experts::none};
  Size heads{};
  Size kv_heads{};  ///< absent: as many as heads
  Size head_dim{};  ///< absent: hidden / heads
  Size vocab{};
  Size window{};
  Size ffn_per_hidden{};
  std::int64_t max_positions{};
  void (*adjust)(Reader&, Transformer&){};  ///< what needs keys of its own
};

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
  const std::vector<std::string> all = known_model_types();
  reader.map().error(*type, fmt::format("unknown model_type '{}'{}", *name, did_you_mean(*name, all)));
  return nullptr;
}

bool tied_embeddings(Reader& reader, const Family& family) {
  const config::Node* node = reader.text().find("tie_word_embeddings");
  if (node == nullptr) {
    node = reader.root().find("tie_word_embeddings");
  }
  if (node == nullptr) {
    return family.tied;
  }
  return config::read<bool>(*node, "tie_word_embeddings", reader.map().diagnostics()).value_or(family.tied);
}

BiasSpec read_biases(Reader& reader, const Family& family) {
  const AttentionBias rule = family.attention_bias;
  bool qkv = rule == AttentionBias::always || rule == AttentionBias::qkv;
  bool output = rule == AttentionBias::always;
  if (rule == AttentionBias::by_key || rule == AttentionBias::by_key_default_on) {
    qkv = reader.map().optional<bool>("attention_bias", rule == AttentionBias::by_key_default_on);
    output = qkv;
  }
  return {.qkv = qkv, .output = output, .mlp = family.mlp_bias};
}

enum class Pattern { full, sliding, chunked };

std::vector<Pattern> patterns_by_rule(Reader& reader, const Family& family, std::int64_t layers) {
  std::vector<Pattern> patterns(static_cast<std::size_t>(layers), Pattern::full);
  const auto set = [&](Pattern pattern, auto&& in) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      if (in(layer)) {
        patterns[static_cast<std::size_t>(layer)] = pattern;
      }
    }
  };
  switch (family.windows) {
    case Windows::none:
      break;
    case Windows::every_layer:
      set(Pattern::sliding, [](std::int64_t) { return true; });
      break;
    case Windows::even_layers:
      set(Pattern::sliding, [](std::int64_t layer) { return layer % 2 == 0; });
      break;
    case Windows::all_but_every_sixth: {
      const std::int64_t period = reader.size({"sliding_window_pattern"}, kMostLayers, 6).value_or(6);
      set(Pattern::sliding, [&](std::int64_t layer) { return (layer + 1) % period != 0; });
      break;
    }
    case Windows::upper_layers:
      // Files list a window that the model ignores unless this switch is on.
      if (reader.map().optional<bool>("use_sliding_window", false)) {
        const std::int64_t first = reader.map().integer("max_window_layers", 28, 0, kMostLayers);
        set(Pattern::sliding, [&](std::int64_t layer) { return layer >= first; });
      }
      break;
    case Windows::chunks: {
      // 1 marks a layer with rotary positions, which is chunked; 0 one without, which sees everything.
      std::vector<std::int64_t> rotary = reader.integers("no_rope_layers", 1);
      if (rotary.empty()) {
        const std::int64_t period = reader.size({"no_rope_layer_interval"}, kMostLayers, 4).value_or(4);
        set(Pattern::chunked, [&](std::int64_t layer) { return (layer + 1) % period != 0; });
        break;
      }
      reader.check_length("no_rope_layers", rotary.size(), layers);
      rotary.resize(static_cast<std::size_t>(layers), 0);
      set(Pattern::chunked, [&](std::int64_t layer) { return rotary[static_cast<std::size_t>(layer)] == 1; });
      break;
    }
  }
  return patterns;
}

/// The per-layer list of newer files; empty when there is none.
std::vector<Pattern> listed_patterns(Reader& reader, std::int64_t layers) {
  static const std::vector<std::string> kNames{"full_attention", "sliding_attention", "chunked_attention"};
  std::vector<Pattern> patterns;
  for (const config::Node* item : reader.map().items("layer_types")) {
    const std::string path = fmt::format("{}[{}]", reader.map().path_of("layer_types"), patterns.size());
    const auto name = config::read<std::string>(*item, path, reader.map().diagnostics());
    const auto found = std::find(kNames.begin(), kNames.end(), name.value_or(kNames.front()));
    if (found == kNames.end()) {
      reader.map().error(*item, fmt::format("'{}': unknown '{}'{}", path, *name, did_you_mean(*name, kNames)));
      patterns.push_back(Pattern::full);
      continue;
    }
    patterns.push_back(static_cast<Pattern>(found - kNames.begin()));
  }
  if (!patterns.empty()) {
    reader.check_length("layer_types", patterns.size(), layers);
    patterns.resize(static_cast<std::size_t>(layers), Pattern::full);
  }
  return patterns;
}

std::vector<LayerSpec> read_attention_patterns(Reader& reader, const Family& family, std::int64_t layers) {
  const std::vector<Pattern> listed = listed_patterns(reader, layers);
  const std::vector<Pattern> patterns = listed.empty() ? patterns_by_rule(reader, family, layers) : listed;
  const auto any = [&](Pattern pattern) {
    return std::find(patterns.begin(), patterns.end(), pattern) != patterns.end();
  };
  const Size window = any(Pattern::sliding) ? reader.nullable("sliding_window", kMostPositions, family.window) : Size{};
  const Size chunk = any(Pattern::chunked) ? reader.nullable("attention_chunk_size", kMostPositions, 8192) : Size{};
  std::vector<LayerSpec> specs;
  specs.reserve(patterns.size());
  for (const Pattern pattern : patterns) {
    specs.push_back({.sliding_window = pattern == Pattern::sliding ? window : Size{},
                     .chunk = pattern == Pattern::chunked ? chunk : Size{}});
  }
  return specs;
}

void mark_moe_layers(Reader& reader, const Family& family, Transformer& t) {
  const auto mark = [&](auto&& in) {
    for (std::size_t layer = 0; layer < t.layer_specs.size(); ++layer) {
      t.layer_specs[layer].moe = in(static_cast<std::int64_t>(layer));
    }
  };
  const auto listed = [](const std::vector<std::int64_t>& list, std::int64_t layer) {
    return std::find(list.begin(), list.end(), layer) != list.end();
  };
  const auto step = [&](std::string_view key) { return reader.size({key}, kMostLayers, 1).value_or(1); };
  switch (family.experts) {
    case Experts::none:
      break;
    case Experts::every_layer:
      mark([](std::int64_t) { return true; });
      break;
    case Experts::sparse_step: {
      const std::int64_t every = step("decoder_sparse_step");
      const std::vector<std::int64_t> dense = reader.integers("mlp_only_layers", t.layers - 1);
      mark([&](std::int64_t layer) { return (layer + 1) % every == 0 && !listed(dense, layer); });
      break;
    }
    case Experts::after_dense: {
      const std::int64_t dense = reader.map().integer("first_k_dense_replace", 3, 0, kMostLayers);
      const std::int64_t every = step("moe_layer_freq");
      mark([&](std::int64_t layer) { return layer >= dense && layer % every == 0; });
      break;
    }
    case Experts::interleaved: {
      const std::int64_t every = step("interleave_moe_layer_step");
      const std::vector<std::int64_t> moe = reader.integers("moe_layers", t.layers - 1);
      mark([&](std::int64_t layer) { return moe.empty() ? (layer + 1) % every == 0 : listed(moe, layer); });
      break;
    }
  }
}

void read_experts(Reader& reader, const Family& family, Transformer& t) {
  if (family.experts == Experts::none) {
    return;
  }
  mark_moe_layers(reader, family, t);
  const bool own_width = family.experts == Experts::sparse_step || family.experts == Experts::after_dense;
  const Size experts = reader.required({"num_local_experts", "num_experts", "n_routed_experts"}, kMostHeads);
  const Size top_k = reader.required({"num_experts_per_tok", "experts_per_token"}, kMostHeads);
  const Size width = own_width ? reader.required({"moe_intermediate_size"}, kMostWidth) : Size{t.ffn};
  if (experts.has_value() && top_k.has_value() && *top_k > *experts) {
    reader.map().error("num_experts_per_tok", fmt::format("a token visits {} experts of only {}", *top_k, *experts));
  }
  MoeSpec moe{.experts = experts.value_or(1), .top_k = top_k.value_or(1), .expert_ffn = width.value_or(1)};
  if (family.experts == Experts::after_dense) {
    moe.shared_experts = reader.map().integer("n_shared_experts", 1, 0, kMostHeads);
    moe.router_bias = true;  // e_score_correction_bias, arXiv 2412.19437 equation 16
  } else if (family.experts == Experts::interleaved) {
    moe.shared_experts = 1;
    // `intermediate_size` is an expert's width here; dense layers have a key of their own.
    t.ffn = reader.size({"intermediate_size_mlp"}, kMostWidth, 16384).value_or(16384);
  } else {
    moe.router_bias = family.mlp_bias;
  }
  moe.shared_ffn = moe.shared_experts > 0 ? moe.expert_ffn : 0;
  const auto is_moe = [](const LayerSpec& layer) { return layer.moe; };
  if (std::any_of(t.layer_specs.begin(), t.layer_specs.end(), is_moe)) {
    t.moe = moe;
  }
}

/// Every product of the parameter count is at most the square of the widest map times experts and layers.
void check_total(Reader& reader, const Transformer& t) {
  const MlaSpec mla = t.mla.value_or(MlaSpec{});
  const MoeSpec moe = t.moe.value_or(MoeSpec{});
  const double widest = static_cast<double>(
      std::max({t.hidden, t.ffn, moe.expert_ffn, mla.q_lora_rank.value_or(0), mla.kv_lora_rank,
                t.heads * query_head_dim(t), t.heads * (mla.qk_nope_head_dim + value_head_dim(t))}));
  const double maps = 16.0 + 4.0 * static_cast<double>(moe.experts + moe.shared_experts);
  if (maps * widest * widest * static_cast<double>(t.layers) > kMostParameters) {
    reader.map().error("hidden_size", "these sizes together make a model of more than 10^18 parameters");
  }
}

void read_heads(Reader& reader, const Family& family, Size hidden, Transformer& t) {
  const Size heads = reader.required({"num_attention_heads", "n_head", "n_heads"}, kMostHeads, family.heads);
  const Size kv_fallback = family.kv_heads.has_value() ? family.kv_heads : heads;
  const Size kv = reader.size({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, kMostHeads, kv_fallback);
  Size head_dim = reader.size({"head_dim"}, kMostWidth, family.head_dim);
  const bool derived = family.experts != Experts::after_dense && reader.map().find("head_dim") == nullptr &&
                       !family.head_dim.has_value();
  if (derived && hidden.has_value() && heads.has_value()) {
    head_dim = *hidden / *heads;
    if (*hidden % *heads != 0) {
      reader.map().error(
          "num_attention_heads",
          fmt::format("{} heads do not divide hidden size {}, and no head_dim is given", *heads, *hidden));
    }
  }
  t.heads = heads.value_or(1);
  t.kv_heads = kv.value_or(t.heads);
  t.head_dim = head_dim.value_or(1);
}

}  // namespace

std::vector<std::string> known_model_types() {
  std::vector<std::string> types;
  for (const KnownType& known : kKnownTypes) {
    types.emplace_back(known.model_type);
  }
  return types;
}

Transformer read_hf_config(const config::Node& root, std::string name, Diagnostics& diagnostics) {
  Transformer t{.name = std::move(name)};
  const config::Node* nested = root.find("text_config");
  const bool has_nested = nested != nullptr && nested->kind != config::Node::Kind::null;
  const config::Node& text = has_nested ? *nested : root;
  Reader reader(text, root, has_nested ? "text_config" : "", diagnostics);
  const Family* family = text.kind == config::Node::Kind::mapping ? find_family(reader, t) : nullptr;
  if (family == nullptr) {
    return t;
  }
  const Size hidden = reader.required({"hidden_size", "n_embd", "d_model"}, kMostWidth);
  const Size ffn_fallback = hidden.has_value() && family->ffn_per_hidden.has_value()
                                ? Size{*hidden * *family->ffn_per_hidden}
                                : family->ffn_per_hidden;
  t.hidden = hidden.value_or(1);
  t.layers = reader.required({"num_hidden_layers", "n_layer", "n_layers"}, kMostLayers).value_or(1);
  t.ffn = reader.required({"intermediate_size", "n_inner", "ffn_hidden_size"}, kMostWidth, ffn_fallback).value_or(1);
  t.vocab = reader.required({"vocab_size"}, kMostVocab, family->vocab).value_or(1);
  t.max_positions =
      reader.size({"max_position_embeddings", "n_positions", "max_seq_len"}, kMostPositions, family->max_positions)
          .value_or(1);
  read_heads(reader, *family, hidden, t);
  t.mlp_kind = family->mlp_kind;
  t.norms = family->norms;
  t.qk_norm = family->qk_norm;
  if (family->windows == Windows::chunks) {
    t.qk_norm = reader.map().optional<bool>("use_qk_norm", true) ? QkNorm::weightless : QkNorm::none;
  }
  t.attention_sinks = family->sinks;
  t.tied_embeddings = tied_embeddings(reader, *family);
  t.biases = read_biases(reader, *family);
  if (family->adjust != nullptr) {
    family->adjust(reader, t);
  }
  t.layer_specs = read_attention_patterns(reader, *family, t.layers);
  read_experts(reader, *family, t);
  if (reader.clean() && t.heads % t.kv_heads != 0) {
    reader.map().error("num_key_value_heads",
                       fmt::format("{} key/value heads do not divide {} heads", t.kv_heads, t.heads));
  }
  if (reader.clean()) {
    check_total(reader, t);
  }
  return t;
}

Transformer load_hf_config(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path file = folder ? path / "config.json" : path;
  const config::Node root = config::load_file(file);
  const bool by_folder = file.filename() == "config.json";
  const std::string name = by_folder
                               ? std::filesystem::absolute(file).lexically_normal().parent_path().filename().string()
                               : file.stem().string();
  Diagnostics diagnostics;
  Transformer t = read_hf_config(root, name, diagnostics);
  diagnostics.throw_if_any();
  return t;
}

}  // namespace ulysim::workload
