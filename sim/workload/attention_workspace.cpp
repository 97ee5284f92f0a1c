#include "sim/workload/attention_workspace.h"

#include "sim/workload/tensor.h"

namespace ulysim::workload {

std::int64_t attention_workspace_bytes(kernel::AttentionKernel implementation, std::int64_t heads,
                                       std::int64_t kv_heads) {
  constexpr std::int64_t kQueryGradient = 4;
  const bool grouped = heads != kv_heads;
  switch (implementation) {
    case kernel::AttentionKernel::flash_attention_2:
    case kernel::AttentionKernel::sdpa:
      return kQueryGradient + (grouped ? 4 : 0);
    case kernel::AttentionKernel::flash_attention_3:
      return kQueryGradient + (grouped ? (8 * kv_heads + heads - 1) / heads : 0);
    case kernel::AttentionKernel::cudnn:
      break;
  }
  return kQueryGradient;
}

void size_attention_workspaces(OpGraph& graph) {
  for (BlockTemplate& block : graph.templates) {
    for (const Op& op : block.body(Phase::backward).ops) {
      const auto* work = std::get_if<AttentionWork>(&op.work);
      if (work == nullptr) {
        continue;
      }
      const Extent* heads = block.tensor(op.reads[0]).find(Dim::heads);
      const Extent* kv_heads = block.tensor(op.reads[1]).find(Dim::kv_heads);
      if (heads == nullptr || kv_heads == nullptr) {
        continue;
      }
      for (const TensorId id : op.writes) {
        Tensor& tensor = block.tensor(id);
        if (tensor.kind == MemoryKind::attention_workspace) {
          tensor.element_bytes = attention_workspace_bytes(work->implementation, local_size(*heads, graph.mesh),
                                                           local_size(*kv_heads, graph.mesh));
        }
      }
    }
  }
}

}  // namespace ulysim::workload
