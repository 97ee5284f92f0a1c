#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/hf_reader.h"
#include "sim/workload/transformer.h"

namespace ulysim::workload::hf {

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

/// The family that the file's `model_type` names, noted in `t`; null when it is missing or unknown, which is reported.
[[nodiscard]] const Family* find_family(Reader& reader, Transformer& t);

/// Every `model_type` that can be read.
[[nodiscard]] std::vector<std::string> known_types();

}  // namespace ulysim::workload::hf
