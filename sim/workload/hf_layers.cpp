#include "sim/workload/hf_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "sim/base/named.h"

namespace ulysim::workload::hf {
namespace {

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

}  // namespace

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

namespace {

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

}  // namespace

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

}  // namespace ulysim::workload::hf
