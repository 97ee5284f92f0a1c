#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/hf_family.h"

namespace ulysim::workload::hf {

/// What each layer's attention sees: by the file's own list, else by the family's rule.
[[nodiscard]] std::vector<LayerSpec> read_attention_patterns(Reader& reader, const Family& family, std::int64_t layers);

/// Marks the layers that have experts and reads those; needs `t.layer_specs` and `t.ffn`.
void read_experts(Reader& reader, const Family& family, Transformer& t);

}  // namespace ulysim::workload::hf
