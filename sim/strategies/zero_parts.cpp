#include "sim/strategies/zero_parts.h"

#include "sim/strategies/rewrite.h"

namespace ulysim::strategies {

using namespace workload;

Sharing sharing_of(const Mesh& mesh, const Tensor& tensor) {
  const bool experts = is_placed_by_expert(tensor);
  if (mesh.replicate > 1) {
    return {.shard = mesh.without_trivial({experts ? MeshAxis::expert_shard : MeshAxis::shard}),
            .replicas = {MeshAxis::replicate}};
  }
  return {.shard = mesh.without_trivial(experts ? AxisSet{MeshAxis::expert_data} : kSampleAxes)};
}

void shard(Tensor& tensor, AxisSet axes) {
  for (const MeshAxis axis : {MeshAxis::data, MeshAxis::ring, MeshAxis::ulysses, MeshAxis::expert_data, MeshAxis::shard,
                              MeshAxis::expert_shard}) {
    if (axes.contains(axis)) {
      tensor.shape.front().split.push_back(axis);
    }
  }
}

}  // namespace ulysim::strategies
