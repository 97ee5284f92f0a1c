#include "sim/workload/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/workload/hf_family.h"
#include "sim/workload/hf_layers.h"
#include "sim/workload/hf_reader.h"

namespace ulysim::workload {

using namespace hf;

namespace {

constexpr double kMostParameters = 4.0e18;

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
  return known_types();
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
