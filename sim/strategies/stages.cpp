#include "sim/strategies/stages.h"

#include <algorithm>

#include "sim/base/check.h"

namespace ulysim::strategies {

using workload::Phase;

std::vector<std::int64_t> layers_of_parts(std::int64_t layers, std::int64_t parts) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(parts), layers / parts);
  for (std::int64_t i = 0; i < layers % parts; ++i) {
    // Parts 1 … parts−2, then the first; the last never, for there are fewer left over than parts.
    const std::int64_t part = i + 2 < parts ? i + 1 : 0;
    ++out[static_cast<std::size_t>(part)];
  }
  return out;
}

namespace {

/// Forward passes before the first backward pass (Megatron-LM, pipeline_parallel/schedules.py,
/// get_pp_rank_microbatches).
std::int64_t warm_up(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t behind = shape.stages - stage - 1;
  const std::int64_t passes = shape.chunks == 1 ? behind : 2 * behind + (shape.chunks - 1) * shape.stages;
  return std::min(passes, shape.chunks * shape.micro_batches);
}

/// The k-th pass of a kind: groups of `stages` micro-batches go through one chunk after the other.
Cell pass(const PipelineShape& shape, Phase phase, std::int64_t k) {
  const std::int64_t round = shape.stages * shape.chunks;
  const std::int64_t chunk = k % round / shape.stages;
  return {.phase = phase,
          .chunk = phase == Phase::forward ? chunk : shape.chunks - 1 - chunk,
          .micro_batch = k / round * shape.stages + k % shape.stages};
}

}  // namespace

std::vector<Cell> one_forward_one_backward(const PipelineShape& shape, std::int64_t stage) {
  ULYSIM_CHECK(shape.chunks == 1 || shape.micro_batches % shape.stages == 0,
               "{} micro-batches of {} stages interleaved", shape.micro_batches, shape.stages);
  const std::int64_t passes = shape.chunks * shape.micro_batches;
  const std::int64_t ahead = warm_up(shape, stage);
  std::vector<Cell> table;
  for (std::int64_t k = 0; k < passes + ahead; ++k) {
    if (k < passes) {
      table.push_back(pass(shape, Phase::forward, k));
    }
    if (k >= ahead) {
      table.push_back(pass(shape, Phase::backward, k - ahead));
    }
  }
  return table;
}

}  // namespace ulysim::strategies
