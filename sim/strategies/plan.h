#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "sim/workload/adapters.h"
#include "sim/workload/mesh.h"
#include "sim/workload/op.h"
#include "sim/workload/tensor.h"

namespace ulysim::strategies {

enum class Recompute : std::uint8_t { none, selective, full, full_keep_attention };
enum class RingExchange : std::uint8_t { p2p, all_gather };
enum class Offload : std::uint8_t { none, cpu, nvme };
/// Of weights at work and of activations; what the optimizer updates is the framework profile's.
enum class Dtype : std::uint8_t { bf16, fp16, fp32 };
/// sgd, lion and muon have one moment (muon: for the matrices of layers; all else is AdamW's).
enum class Optimizer : std::uint8_t { adamw, adam, sgd, lion, muon, adafactor };
/// Type of the moments; what else it changes is the framework profile's.
enum class OptimizerStates : std::uint8_t { fp32, bf16, eight_bit };

/// How one step is trained: the degrees and every training option, resolved (no defaults left to fill in).
struct Plan {
  std::string name{};
  workload::Mesh mesh{};           ///< degrees and their placement; the expert degree lies within data × sequence
  double expert_imbalance{1.0};    ///< tokens of the busiest expert-parallel rank over the average; 1: balanced
  std::int64_t virtual_stages{1};  ///< of each pipeline stage; above 1 the schedule is interleaved, else 1F1B
  workload::Layout ring_layout{workload::Layout::zigzag};
  RingExchange ring_exchange{RingExchange::p2p};
  std::int64_t head_chunks{1};                   ///< rounds of attention, each on so large a part of the heads
  std::optional<std::int64_t> sequence_chunk{};  ///< tokens of a chunk, global; none: the sequence is one
  std::int64_t sequence_length{};                ///< tokens, global, padding included
  /// Where sequences are padded: how many tokens of each of the micro batch are trained on (one number: of each alike);
  /// the others are work that trains nothing. Empty: nothing is padded.
  std::vector<std::int64_t> lengths{};
  std::int64_t micro_batch{1};   ///< sequences per data-parallel replica and micro step
  std::int64_t accumulation{1};  ///< micro steps per optimizer step
  kernel::AttentionKernel attention{kernel::AttentionKernel::flash_attention_2};
  workload::Mask::Kind mask{workload::Mask::Kind::causal};
  std::optional<std::int64_t> sliding_window{};         ///< of every layer; one with a shorter window keeps that
  std::optional<workload::BlockSparse> block_sparse{};  ///< of every layer, instead of windows and chunks
  workload::DocumentEnds documents{};  ///< packed into every sequence, padding as the last; null: one document
  Recompute recompute{Recompute::full};
  /// Of `full`: only so many layers recompute, the first ones (of every virtual stage alike). Absent: all do.
  std::optional<std::int64_t> recompute_layers{};
  Offload checkpoint_offload{Offload::none};
  std::int64_t zero{3};  ///< 0…3, over data × sequence ranks
  Dtype dtype{Dtype::bf16};
  Optimizer optimizer{Optimizer::adamw};
  OptimizerStates optimizer_states{OptimizerStates::fp32};
  Offload optimizer_offload{Offload::none};
  Offload parameter_offload{Offload::none};
  kernel::Precision gemm_precision{kernel::Precision::bf16};  ///< of the layers' linear maps
  std::optional<workload::Adapters> adapters{};               ///< what is trained instead of the weights
  bool tiled_mlp{};
  bool tiled_loss{};

  /// Equal parts that the tokens of a sequence must divide into: they are split over all three axes, zigzag halves
  /// them.
  [[nodiscard]] std::int64_t sequence_parts() const {
    using workload::MeshAxis;
    const std::int64_t rings = mesh.size(MeshAxis::ring);
    return mesh.size(workload::AxisSet{MeshAxis::tensor, MeshAxis::ulysses, MeshAxis::ring}) *
           (ring_layout == workload::Layout::zigzag && rings > 1 ? 2 : 1);
  }
  /// Whether something of this plan is on the drives of the node.
  [[nodiscard]] bool uses_nvme() const {
    return checkpoint_offload == Offload::nvme || optimizer_offload == Offload::nvme ||
           parameter_offload == Offload::nvme;
  }
  /// Of which a sequence is a multiple.
  [[nodiscard]] std::int64_t sequence_unit() const { return std::lcm(sequence_parts(), sequence_chunk.value_or(1)); }
  /// Chunks of tokens that attention goes through one after the other.
  [[nodiscard]] std::int64_t sequence_chunks() const {
    return sequence_chunk ? std::max<std::int64_t>(1, sequence_length / *sequence_chunk) : 1;
  }
  [[nodiscard]] std::int64_t global_batch() const {
    return micro_batch * accumulation * mesh.size(workload::MeshAxis::data);
  }
  /// Of the shortest and the longest document of a sequence; the whole sequence where nothing is packed.
  struct DocumentLengths {
    std::int64_t shortest{};
    std::int64_t longest{};
  };
  [[nodiscard]] DocumentLengths document_lengths() const;
  /// Tokens of an optimizer step, padding not counted.
  [[nodiscard]] double trained_tokens() const;
};

/// The plans of one sequence each that train on the same tokens without padding, each with how often it stands in
/// the micro batch of `plan`: what its model FLOPs are counted on. `plan` itself, once, when nothing is padded.
struct Unpadded {
  Plan plan{};
  std::int64_t times{1};
};
[[nodiscard]] std::vector<Unpadded> unpadded(const Plan& plan);

/// Names of the passes that the plan cannot do without, in the order of the catalogue.
[[nodiscard]] std::vector<std::string> passes_of(const Plan& plan);

}  // namespace ulysim::strategies
