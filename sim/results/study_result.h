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
  std::string text{};  ///< as a scenario file that asks for the same; what it leaves open is in the plans' options
};

/// GPUs, switches, hosts and the links between them, as far as they can be drawn.
struct TopologyPicture {
  struct Vertex {
    std::string name{};
    std::string kind{};                  ///< "gpu", "network_switch" …
    std::optional<std::int64_t> node{};  ///< absent: a switch between nodes
  };
  struct Link {
    std::uint32_t from{};  ///< index in `vertices`
    std::uint32_t to{};
    std::string kind{};
    double capacity{};  ///< bytes per second, in this direction
  };
  std::vector<Vertex> vertices{};
  std::vector<Link> links{};
  std::int64_t omitted_nodes{};
};

/// What `run` (one plan), `compare` and `maxseq` (all of them) hand to the report writers.
struct StudyResult {
  ScenarioEcho scenario{};
  ModelInfo model{};
  TopologyPicture topology{};
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

struct FittedParameter {
  std::string name{};
  double value{};
  std::string unit{};  ///< empty: a plain number
  std::string source{};
  std::string kind{};              ///< measured, published, assumed …
  std::optional<double> spread{};  ///< relative, one sigma, of what it predicts
};

/// How sure fitted parameters are, and how much one makes up for another.
struct FitCovariance {
  std::string part{};  ///< "gemm"
  std::vector<std::string> parameters{};
  std::vector<double> values{};
  std::vector<double> matrix{};  ///< row by row
};

/// Errors |fitted/measured − 1| of one group of samples.
struct FitGroup {
  std::string name{};
  std::int64_t points{};
  double median_error{};
  double p90_error{};
  double worst_error{};
  // Of samples that the fit had not seen, where that was tried.
  std::optional<double> cross_validated_median{};
  std::optional<double> cross_validated_p90{};
};

struct FitResidual {
  std::string group{};
  std::string label{};
  double measured{};
  double fitted{};
  std::optional<double> cross_validated{};  ///< by a fit that had not seen the sample
  std::string unit{};
};

/// What `calibrate fit` found.
struct FitResult {
  std::string name{};  ///< of the GPU or machine
  std::vector<FittedParameter> parameters{};
  std::vector<FitCovariance> covariances{};
  std::vector<FitGroup> groups{};
  std::vector<FitResidual> residuals{};
};

}  // namespace ulysim::results
