#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/op_graph.h"

namespace ulysim::strategies {

/// Who does what when in a pipeline of `stages`, each with `chunks` virtual stages: chunk c of stage s is virtual stage
/// c · stages + s.
struct PipelineShape {
  std::int64_t stages{1};
  std::int64_t chunks{1};  ///< above 1: interleaved
  std::int64_t micro_batches{1};
};

/// Layers of each of `parts` virtual stages, as even as can be. What is left over goes to the middle ones first: the
/// first part has the embedding beside its layers and the last the head (The Llama 3 Herd of Models, arXiv 2407.21783
/// §3.3.2: one layer less at either end).
[[nodiscard]] std::vector<std::int64_t> layers_of_parts(std::int64_t layers, std::int64_t parts);

/// One entry of the table that a schedule is.
struct Cell {
  workload::Phase phase{workload::Phase::forward};
  std::int64_t chunk{};
  std::int64_t micro_batch{};
  friend bool operator==(const Cell& a, const Cell& b) {
    return a.phase == b.phase && a.chunk == b.chunk && a.micro_batch == b.micro_batch;
  }
};

/// What stage `stage` runs, in order: 1F1B (PipeDream-Flush, arXiv 2006.09503 §2.2), or with several chunks its
/// interleaved form (arXiv 2104.04473 §2.2), where the micro-batches must be a multiple of the stages.
[[nodiscard]] std::vector<Cell> one_forward_one_backward(const PipelineShape& shape, std::int64_t stage);

}  // namespace ulysim::strategies
