#include "calibration/import/trace_operators.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "calibration/samples/text.h"

namespace ulysim::calibration {
namespace {

using config::Node;

constexpr std::int64_t kMostSide = std::int64_t{1} << 40;

const std::string& name_of(const Node& event) {
  static const std::string kNone;
  const Node* found = event.find("name");
  return found == nullptr ? kNone : found->text;
}

std::vector<std::int64_t> dims_of(const Node& node) {
  std::vector<std::int64_t> dims;
  for (const Node& item : node.items) {
    const auto dim = whole_number(item.text);
    dims.push_back(dim && *dim <= kMostSide ? *dim : 0);
  }
  return dims;
}

/// The inputs of an operator, as far as their shapes were recorded.
struct Inputs {
  const Node* dims{};
  const Node* types{};
  const Node* values{};

  explicit Inputs(const Node& event) {
    const Node* args = event.find("args");
    dims = args == nullptr ? nullptr : args->find("Input Dims");
    types = args == nullptr ? nullptr : args->find("Input type");
    values = args == nullptr ? nullptr : args->find("Concrete Inputs");
  }
  /// Of a bf16 tensor; empty when it is none.
  [[nodiscard]] std::vector<std::int64_t> tensor(std::size_t index) const {
    if (dims == nullptr || types == nullptr || dims->items.size() <= index || types->items.size() <= index ||
        !types->items[index].text.ends_with("BFloat16")) {
      return {};
    }
    return dims_of(dims->items[index]);
  }
  [[nodiscard]] std::string_view value(std::size_t index) const {
    return values == nullptr || values->items.size() <= index ? std::string_view() : values->items[index].text;
  }
};

bool all_positive(const std::vector<std::int64_t>& dims) {
  return std::all_of(dims.begin(), dims.end(), [](std::int64_t dim) { return dim > 0; });
}

/// Of aten::mm, aten::addmm and aten::bmm in bf16.
std::optional<Probe> gemm_of(const Node& event) {
  const std::string& name = name_of(event);
  const std::size_t first = name == "aten::mm" || name == "aten::bmm" ? 0 : 1;
  if (first == 1 && name != "aten::addmm") {
    return std::nullopt;
  }
  const Inputs inputs(event);
  const auto a = inputs.tensor(first);
  const auto b = inputs.tensor(first + 1);
  const std::size_t rank = name == "aten::bmm" ? 3 : 2;
  if (a.size() != rank || b.size() != rank || a[rank - 1] != b[rank - 2] || !all_positive(a) || !all_positive(b)) {
    return std::nullopt;
  }
  return GemmProbe{.m = a[rank - 2],
                   .n = b[rank - 1],
                   .k = a[rank - 1],
                   .batch = rank == 3 ? a[0] : 1,
                   .precision = kernel::Precision::bf16};
}

/// Operators that are one attention kernel, or those of its backward pass: where their queries, keys and causal flag
/// stand (pytorch aten/src/ATen/native/native_functions.yaml; flash-attention flash_attn/flash_attn_interface.py, whose
/// heads come after the tokens).
struct AttentionOperator {
  std::string_view name{};
  kernel::AttentionKernel implementation{};
  Pass pass{};
  std::size_t queries{};  ///< keys follow
  std::size_t causal{};
  bool tokens_first{};
};
constexpr std::array<AttentionOperator, 6> kAttentionOperators{{
    {"aten::_scaled_dot_product_flash_attention", kernel::AttentionKernel::sdpa, Pass::forward, 0, 4, false},
    {"aten::_scaled_dot_product_flash_attention_backward", kernel::AttentionKernel::sdpa, Pass::backward, 1, 11, false},
    {"aten::_scaled_dot_product_cudnn_attention", kernel::AttentionKernel::cudnn, Pass::forward, 0, 6, false},
    {"aten::_scaled_dot_product_cudnn_attention_backward", kernel::AttentionKernel::cudnn, Pass::backward, 1, 14,
     false},
    {"flash_attn::_flash_attn_forward", kernel::AttentionKernel::flash_attention_2, Pass::forward, 0, 5, true},
    {"flash_attn::_flash_attn_backward", kernel::AttentionKernel::flash_attention_2, Pass::backward, 1, 11, true},
}};

std::optional<Probe> attention_of(const Node& event) {
  const std::string& name = name_of(event);
  const auto* const found = std::find_if(kAttentionOperators.begin(), kAttentionOperators.end(),
                                         [&](const AttentionOperator& one) { return one.name == name; });
  if (found == kAttentionOperators.end()) {
    return std::nullopt;
  }
  const Inputs inputs(event);
  const auto q = inputs.tensor(found->queries);
  const auto k = inputs.tensor(found->queries + 1);
  const std::string_view causal = inputs.value(found->causal);
  constexpr std::size_t kRank = 4;  // sequences, heads and tokens (or the other way round), head size
  if (q.size() != kRank || k.size() != kRank || !all_positive(q) || !all_positive(k) ||
      (causal != "True" && causal != "False")) {
    return std::nullopt;
  }
  const std::size_t tokens = found->tokens_first ? 1 : 2;
  const std::size_t heads = found->tokens_first ? 2 : 1;
  const AttentionProbe probe{.implementation = found->implementation,
                             .pass = found->pass,
                             .mask = causal == "True" ? Mask::causal : Mask::full,
                             .sequences = q[0],
                             .heads = q[heads],
                             .kv_heads = k[heads],
                             .head_dim = q[3],
                             .queries = q[tokens],
                             .keys = k[tokens]};
  return is_measurable(probe) ? std::optional<Probe>(probe) : std::nullopt;
}

}  // namespace

std::optional<Probe> probe_of_operator(const Node& event) {
  const auto product = gemm_of(event);
  return product ? product : attention_of(event);
}

}  // namespace ulysim::calibration
