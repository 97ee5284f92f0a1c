#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/run_result.h"

namespace ulysim::results {

/// What was read from a model.
struct ModelInfo {
  std::string name{};
  std::string model_type{};
  std::int64_t parameters{};
  std::int64_t active_parameters{};  ///< what one token passes through
  std::int64_t layers{};
  std::int64_t hidden{};
  std::int64_t heads{};
  std::int64_t kv_heads{};
  std::int64_t head_dim{};
  std::int64_t ffn{};
  std::int64_t vocab{};
  std::int64_t max_positions{};
  bool tied_embeddings{};
  std::string attention{};  ///< "grouped-query (8 of 32)", "multi-head latent" …
  std::string mlp{};        ///< "gated", "plain", "128 experts, 8 a token"
  std::vector<std::int64_t> ulysses_degrees{};
};

/// Where one number that entered the simulation comes from.
struct Parameter {
  std::string name{};   ///< "gpu.h100-sxm.memory_bandwidth"
  std::string value{};  ///< as text with its unit
  std::string source{};
  std::string kind{};  ///< datasheet, published, measured, assumed
  std::optional<double> spread{};
};

/// What was asked, so that a saved result stands alone.
struct ScenarioEcho {
  std::string name{};
  std::string model{};
  std::string node{};
  std::string gpu{};
  std::int64_t nodes{};
  std::int64_t gpus{};
  std::string topology{};
  std::int64_t sequence_length{};  ///< of the first plan
  std::optional<std::int64_t> total_tokens{};
  std::optional<double> price_per_gpu_hour{};
};

/// What `run` (one plan), `compare` and `maxseq` (all of them) hand to the report writers.
struct StudyResult {
  ScenarioEcho scenario{};
  ModelInfo model{};
  std::vector<PlanResult> plans{};
  std::vector<Parameter> parameters{};
  std::vector<std::string> warnings{};  ///< sentences; figures stand all the same
};

/// The plan with the most tokens/s/GPU among those that fit (the first of equals); none when none fits.
/// Where all global batches are equal that is the shortest step. Of `maxseq` the plan with the longest sequence, by
/// tokens/s/GPU among equals.
[[nodiscard]] std::optional<std::size_t> winner(const StudyResult& study);

/// One published figure against its prediction, in the source's unit.
struct ValidationRow {
  std::string source{};  ///< short name of the publication
  std::string id{};      ///< the row's own
  std::string metric{};  ///< step_time_s, tokens_per_s_per_gpu, mfu …
  double measured{};
  std::optional<double> predicted{};  ///< absent when refused; `note` says why
  std::optional<double> low{};
  std::optional<double> high{};
  std::string note{};
};

/// Errors |predicted/measured − 1| of the rows of one metric or source (or of all: metric "all").
struct ValidationSummary {
  std::string metric{};
  std::int64_t rows{};            ///< figures with a prediction
  std::int64_t skipped{};         ///< rows without
  std::int64_t outcomes{};        ///< rows that only say whether the run fitted, with a prediction
  std::int64_t wrong_outcomes{};  ///< of them
  double median_error{};
  double p90_error{};
  double worst_error{};
  double median_ratio{};  ///< of predicted / measured: the bias
};

struct ValidationResult {
  std::vector<ValidationRow> rows{};
  std::vector<ValidationSummary> summary{};
};

}  // namespace ulysim::results
