#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ulysim::workload {

/// plain: up, activation, down. gated: gate and up, activation × up, down (SwiGLU, GeGLU).
enum class MlpKind { plain, gated };

enum class NormKind { rms, layer };

/// How attention and MLP of one layer follow each other. parallel: both read the layer's input and their
/// outputs are added at once (GPT-NeoX, Falcon).
enum class BlockOrder { sequential, parallel };

/// Normalisation of queries and keys before the attention product.
enum class QkNorm {
  none,
  weightless,  ///< L2 over each head, nothing to learn (Llama 4)
  per_head,    ///< one weight vector of head_dim each for Q and K (Qwen3, Gemma 3)
  full_width,  ///< over all heads together (MPT's qk_ln)
};

struct NormSpec {
  NormKind kind{NormKind::rms};
  bool bias{};
  std::int64_t per_layer{2};  ///< 1 (shared by parallel branches), 2, or 4 (before and after both branches)
};

/// Which linear maps carry a bias vector.
struct BiasSpec {
  bool qkv{};
  bool output{};  ///< of the attention's output projection
  bool mlp{};     ///< of the dense MLP and of each expert
  bool head{};    ///< of the vocabulary projection
};

/// Attention pattern and MLP of one layer. Neither window nor chunk: full causal attention.
struct LayerSpec {
  std::optional<std::int64_t> sliding_window{};  ///< tokens a query sees, itself included
  std::optional<std::int64_t> chunk{};           ///< tokens of a block outside which nothing is seen
  bool moe{};                                    ///< mixture of experts instead of the dense MLP
};

struct MoeSpec {
  std::int64_t experts{};         ///< routed experts of one layer
  std::int64_t top_k{};           ///< routed experts a token visits
  std::int64_t expert_ffn{};      ///< inner width of one routed expert
  std::int64_t shared_experts{};  ///< experts every token visits
  std::int64_t shared_ffn{};      ///< inner width of one shared expert
  bool router_bias{};             ///< one learned or balancing value per routed expert
};

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).
struct MlaSpec {
  std::optional<std::int64_t> q_lora_rank{};  ///< absent: queries are projected directly
  std::int64_t kv_lora_rank{};
  std::int64_t qk_nope_head_dim{};
  std::int64_t qk_rope_head_dim{};
  std::int64_t v_head_dim{};
};

/// A decoder-only transformer, as far as its size, work and traffic depend on it. Vision or audio towers and
/// multi-token-prediction layers are not part of it.
struct Transformer {
  std::string name{};
  std::string model_type{};  ///< as the configuration calls the (text) model
  std::int64_t layers{};
  std::int64_t hidden{};
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};  ///< of Q, K and V; under MLA see `query_head_dim`, `value_head_dim`
  std::int64_t ffn{};       ///< inner width of the dense MLP (of no meaning when every layer is MoE)
  MlpKind mlp_kind{MlpKind::gated};
  std::int64_t vocab{};
  std::int64_t max_positions{};
  bool tied_embeddings{};            ///< the head reuses the embedding's weights
  std::int64_t learned_positions{};  ///< rows of a learned position embedding; 0 for rotary or ALiBi
  NormSpec norms{};
  BlockOrder block_order{BlockOrder::sequential};
  BiasSpec biases{};
  QkNorm qk_norm{QkNorm::none};
  bool attention_sinks{};                ///< one learned logit per query head
  std::vector<LayerSpec> layer_specs{};  ///< `layers` of them
  std::optional<MoeSpec> moe{};          ///< present when any layer is MoE
  std::optional<MlaSpec> mla{};
};

/// Elements of one head of Q (and K), and of V (and the attention's output).
[[nodiscard]] std::int64_t query_head_dim(const Transformer& t);
[[nodiscard]] std::int64_t value_head_dim(const Transformer& t);

/// Elements, not bytes.
struct LayerParameters {
  std::int64_t attention{};  ///< projections, their biases, QK norms, sinks
  std::int64_t dense_mlp{};
  std::int64_t experts{};         ///< all routed experts together
  std::int64_t shared_experts{};  ///< all shared experts together
  std::int64_t router{};
  std::int64_t norms{};

  [[nodiscard]] std::int64_t mlp() const { return dense_mlp + experts + shared_experts + router; }
  [[nodiscard]] std::int64_t total() const { return attention + mlp() + norms; }
};

struct ParameterCount {
  std::int64_t embedding{};
  std::int64_t position_embedding{};
  std::int64_t layers{};  ///< sum over the layers
  std::int64_t final_norm{};
  std::int64_t head{};  ///< 0 weights when tied; a bias counts all the same
  std::int64_t total{};
  std::int64_t active{};  ///< of `total`, what one token passes through: top_k of the routed experts
};

/// `layer` < t.layer_specs.size().
[[nodiscard]] LayerParameters layer_parameters(const Transformer& t, std::size_t layer);
[[nodiscard]] ParameterCount count_parameters(const Transformer& t);

/// The Ulysses degrees P that DeepSpeed accepts for this model, ascending, 1 among them: P divides the query
/// heads, and P divides the key/value heads or is a multiple of them (then K and V are repeated P/kv times).
/// Source: deepspeedai/DeepSpeed, runtime/sequence_parallel/ulysses_sp.py, UlyssesSPAttentionHF.
[[nodiscard]] std::vector<std::int64_t> ulysses_degrees(const Transformer& t);

}  // namespace ulysim::workload
