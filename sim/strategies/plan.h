#pragma once

#include <cstdint>
#include <string>

#include "sim/workload/mesh.h"
#include "sim/workload/op.h"
#include "sim/workload/tensor.h"

namespace ulysim::strategies {

enum class Recompute : std::uint8_t { none, selective, full, full_keep_attention };
enum class RingExchange : std::uint8_t { p2p, all_gather };
enum class Offload : std::uint8_t { none, cpu };

/// How one step is trained: the degrees and every training option, resolved (no defaults left to fill in).
struct Plan {
  std::string name{};
  workload::Mesh mesh{};           ///< degrees and their placement; the expert degree lies within data × sequence
  double expert_imbalance{1.0};    ///< tokens of the busiest expert-parallel rank over the average; 1: balanced
  std::int64_t virtual_stages{1};  ///< of each pipeline stage; above 1 the schedule is interleaved, else 1F1B
  workload::Layout ring_layout{workload::Layout::zigzag};
  RingExchange ring_exchange{RingExchange::p2p};
  std::int64_t sequence_length{};  ///< tokens, global
  std::int64_t micro_batch{1};     ///< sequences per data-parallel replica and micro step
  std::int64_t accumulation{1};    ///< micro steps per optimizer step
  kernel::AttentionKernel attention{kernel::AttentionKernel::flash_attention_2};
  workload::Mask::Kind mask{workload::Mask::Kind::causal};
  Recompute recompute{Recompute::full};
  Offload checkpoint_offload{Offload::none};
  std::int64_t zero{3};  ///< 0…3, over data × sequence ranks
  Offload optimizer_offload{Offload::none};
  bool tiled_mlp{};
  bool tiled_loss{};

  [[nodiscard]] std::int64_t global_batch() const {
    return micro_batch * accumulation * mesh.size(workload::MeshAxis::data);
  }
};

}  // namespace ulysim::strategies
