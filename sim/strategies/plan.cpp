#include "sim/strategies/plan.h"

#include <algorithm>
#include <map>

namespace ulysim::strategies {

double Plan::trained_tokens() const {
  const auto batch = static_cast<double>(global_batch());
  if (lengths.empty()) {
    return batch * static_cast<double>(sequence_length);
  }
  double sum = 0;
  for (const std::int64_t length : lengths) {
    sum += static_cast<double>(length);
  }
  return batch * sum / static_cast<double>(lengths.size());
}

Plan::DocumentLengths Plan::document_lengths() const {
  if (!documents) {
    return {.shortest = sequence_length, .longest = sequence_length};
  }
  DocumentLengths lengths_of{.shortest = documents->front(), .longest = documents->front()};
  for (std::size_t i = 1; i < documents->size(); ++i) {
    const std::int64_t length = (*documents)[i] - (*documents)[i - 1];
    lengths_of.shortest = std::min(lengths_of.shortest, length);
    lengths_of.longest = std::max(lengths_of.longest, length);
  }
  return lengths_of;
}

std::vector<Unpadded> unpadded(const Plan& plan) {
  if (plan.lengths.empty()) {
    return {{.plan = plan}};
  }
  std::map<std::int64_t, std::int64_t> times;
  for (const std::int64_t length : plan.lengths) {
    times[length] += plan.lengths.size() == 1 ? plan.micro_batch : 1;
  }
  std::vector<Unpadded> all;
  for (const auto& [length, count] : times) {
    all.push_back({.plan = plan, .times = count});
    all.back().plan.sequence_length = length;
    all.back().plan.micro_batch = 1;
    all.back().plan.lengths.clear();
  }
  return all;
}

std::vector<std::string> passes_of(const Plan& plan) {
  using workload::MeshAxis;
  const auto split = [&](MeshAxis axis) { return plan.mesh.size(axis) > 1; };
  const std::pair<const char*, bool> asked[] = {
      {"pipeline", split(MeshAxis::pipeline)},
      {"data", split(MeshAxis::data)},
      {"tensor", split(MeshAxis::tensor)},
      {"head-chunks", plan.head_chunks > 1},
      {"ulysses", split(MeshAxis::ulysses)},
      {"ring", split(MeshAxis::ring)},
      {"sequence-chunks", plan.sequence_chunk.has_value()},
      {"expert", split(MeshAxis::expert)},
      {"tiling", plan.tiled_mlp || plan.tiled_loss},
      {"recompute", plan.recompute != Recompute::none},
      {"checkpoint-offload", plan.checkpoint_offload != Offload::none},
      {"zero", plan.zero > 0},
      {"optimizer", true},
      {"optimizer-offload", plan.optimizer_offload != Offload::none},
      {"schedule", split(MeshAxis::pipeline)},
  };
  std::vector<std::string> names;
  for (const auto& [name, wanted] : asked) {
    if (wanted) {
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace ulysim::strategies
