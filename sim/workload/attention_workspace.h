#pragma once

#include <cstdint>

#include "hw_models/kernel/kernel.h"
#include "sim/workload/op_graph.h"

namespace ulysim::workload {

/// Scratch of the backward attention kernel, bytes per element of the query heads, where a rank holds so many heads.
/// fp32 dQ accumulator 4 B; beside it, when several query heads share a key/value head: FlashAttention-2 and SDPA
/// expand dK and dV to the query heads in bf16 (4 B), FlashAttention-3 keeps them in fp32 at the key/value heads (8 B
/// each group). Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp (mha_bwd), hopper/flash_api.cpp; cuDNN: dQ
/// accumulator (cudnn-frontend, SDPA backward node).
[[nodiscard]] std::int64_t attention_workspace_bytes(kernel::AttentionKernel implementation, std::int64_t heads,
                                                     std::int64_t kv_heads);

/// Sizes the scratch of every backward attention call by the heads that a rank holds once all passes have split them:
/// split far enough, grouped heads are no longer grouped.
void size_attention_workspaces(OpGraph& graph);

}  // namespace ulysim::workload
