#include "sim/workload/block_builder.h"

#include <algorithm>

namespace ulysim::workload {

namespace {

/// How elements of a precision are held: bytes of so many. mxfp8 has a scale byte for 32 (OCP microscaling
/// formats 1.0), nvfp4 one for 16 (NVIDIA, Pretraining LLMs with NVFP4, arXiv 2509.25149 §2).
struct Packing {
  std::int64_t bytes{};
  std::int64_t elements{};
};

Packing packing_of(kernel::Precision precision) {
  switch (precision) {
    case kernel::Precision::bf16:
      break;
    case kernel::Precision::fp8:
      return {.bytes = 1, .elements = 1};
    case kernel::Precision::mxfp8:
      return {.bytes = 33, .elements = 32};
    case kernel::Precision::nvfp4:
      return {.bytes = 9, .elements = 16};
  }
  return {.bytes = 2, .elements = 1};
}

/// Of a frozen weight: stacks that keep trained ones in fp32 leave those as they are loaded (accelerate
/// utils/fsdp_utils.py upcasts what requires gradients).
constexpr std::int64_t kBf16Bytes = 2;

/// 256 blocks of 64: half a byte an element, a byte a block, 4 in all.
constexpr std::int64_t kNf4Blocks = 256;
constexpr Packing kNf4{.bytes = kNf4Blocks * (32 + 1) + 4, .elements = kNf4Blocks * 64};

bool is_one_of(Dim dim, const std::vector<Dim>& dims) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

/// The extents of `tensor` in (or not in) `dims`.
std::vector<Extent> extents(const Tensor& tensor, const std::vector<Dim>& dims, bool in) {
  std::vector<Extent> found;
  std::copy_if(tensor.shape.begin(), tensor.shape.end(), std::back_inserter(found),
               [&](const Extent& extent) { return is_one_of(extent.dim, dims) == in; });
  return found;
}

std::vector<Extent> chain(std::vector<Extent> first, const std::vector<Extent>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

const std::vector<std::string>& adapter_targets() {
  static const std::vector<std::string> names{"q_proj",   "k_proj",    "v_proj",   "o_proj",   "gate_proj",
                                              "up_proj",  "down_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa",
                                              "kv_b_proj"};
  return names;
}

BlockBuilder::Weight BlockBuilder::declare(const std::string& name, const std::vector<Extent>& shape, bool frozen) {
  Weight w;
  w.value = block_.add({.name = name,
                        .shape = shape,
                        .element_bytes = frozen ? kBf16Bytes : options_.costs.weight_bytes,
                        .kind = MemoryKind::weights,
                        .persistent = true,
                        .parameter = true,
                        .frozen = frozen});
  if (frozen) {
    return w;
  }
  w.grad = block_.add({.name = "d_" + name, .shape = shape, .kind = MemoryKind::gradients});
  w.total = block_.add({.name = "sum_d_" + name,
                        .shape = shape,
                        .element_bytes = options_.costs.gradient_bytes,
                        .kind = MemoryKind::gradients,
                        .persistent = true});
  return w;
}

BlockBuilder::Weight BlockBuilder::linear_weight(const std::string& name, const std::vector<Extent>& shape) {
  const Weight w = weight(name, shape);
  Tensor& value = block_.tensor(w.value);
  if (options_.adapters && options_.adapters->base == BaseWeights::nf4) {
    value.element_bytes = kNf4.bytes;
    value.block_elements = kNf4.elements;
  } else if (options_.gemm_precision == kernel::Precision::fp8 && options_.quantised_gather) {
    value.gathered_bytes = 1;
  }
  return w;
}

TensorId BlockBuilder::made(const std::string& name, TensorId from, Tensor to, Traffic traffic) {
  to.name = block_.tensor(from).name + "_" + name + (phase_ == Phase::backward ? "_in_backward" : "");
  to.port = Port::none;
  to.persistent = to.parameter = to.frozen = to.shared = false;
  const TensorId id = block_.add(std::move(to));
  add({.name = name + "_" + block_.tensor(from).name,
       .work = ElementwiseWork{.traffic = {traffic}, .launches = options_.costs.quantise_launches},
       .reads = {from},
       .writes = {id}});
  return id;
}

TensorId BlockBuilder::operand(TensorId id, double traffic, Operands& known) {
  if (options_.gemm_precision == kernel::Precision::bf16) {
    return id;
  }
  const auto found = known.find(id.index());
  if (found != known.end()) {
    return found->second;
  }
  const Packing packing = packing_of(options_.gemm_precision);
  Tensor quantised = block_.tensor(id);
  quantised.element_bytes = packing.bytes;
  quantised.block_elements = packing.elements;
  const TensorId made_id = made("quantise", id, std::move(quantised), {id, traffic});
  known.emplace(id.index(), made_id);
  return made_id;
}

TensorId BlockBuilder::input_again(TensorId x) {
  const double traffic = options_.costs.requantise_traffic;
  return traffic > 0 ? operand(x, traffic, operands_again_) : operand(x, options_.costs.quantise_traffic, operands_);
}

TensorId BlockBuilder::weight_operand(const Weight& w) {
  const auto key = std::pair(phase_, w.value.index());
  const auto known = weight_operands_.find(key);
  if (known != weight_operands_.end()) {
    return known->second;
  }
  TensorId id = w.value;
  if (block_.tensor(id).block_elements != 1) {
    constexpr double kBf16 = 2.0;
    Tensor plain = block_.tensor(id);
    plain.element_bytes = 2;
    plain.block_elements = 1;
    plain.kind = MemoryKind::gathered_parameters;
    const double read = static_cast<double>(kNf4.bytes) / static_cast<double>(kNf4.elements);
    id = made("dequantise", id, std::move(plain), {id, read + kBf16});
  }
  if (options_.gemm_precision != kernel::Precision::bf16 && !block_.tensor(w.value).gathered_bytes) {
    const Packing packing = packing_of(options_.gemm_precision);
    Tensor quantised = block_.tensor(id);
    quantised.element_bytes = packing.bytes;
    quantised.block_elements = packing.elements;
    quantised.kind = MemoryKind::gathered_parameters;
    id = made("quantise", id, std::move(quantised), {id, options_.costs.quantise_weight_traffic});
  } else if (options_.gemm_precision != kernel::Precision::bf16 && phase_ == Phase::backward &&
             options_.costs.transpose_weight_traffic > 0) {
    // FP8 products take both operands along the dimension that they contract, which for dgrad is a weight's other one.
    Tensor transposed = block_.tensor(id);
    transposed.element_bytes = packing_of(options_.gemm_precision).bytes;
    transposed.kind = MemoryKind::gathered_parameters;
    transposed.gathered_bytes.reset();
    id = made("transpose", id, std::move(transposed), {id, options_.costs.transpose_weight_traffic});
  }
  weight_operands_.emplace(key, id);
  return id;
}

BlockBuilder::Adapter BlockBuilder::adapter(const std::string& name, const Linear& l, const Rows& rows) {
  const Extent inner{.dim = Dim::adapter, .size = options_.adapters->rank};
  const Tensor& w = block_.tensor(l.w.value);
  const std::vector<Extent> groups = extents(w, rows.groups, true);
  const std::vector<Extent> in = extents(w, l.in_dims, true);
  const std::vector<Extent> out = extents(w, l.out_dims, true);
  const std::vector<Extent> samples = extents(block_.tensor(l.x), l.in_dims, false);
  Adapter adapter;
  adapter.a = declare("w_" + name + "_a", chain(chain(in, {inner}), groups), false);
  adapter.b = declare("w_" + name + "_b", chain(chain({inner}, out), groups), false);
  adapter.inner = block_.add({.name = name + "_inner", .shape = chain(samples, {inner})});
  return adapter;
}

void BlockBuilder::linear(const std::string& name, const Linear& l, TensorId y, const Rows& rows) {
  const auto like_y = [&](const std::string& suffix) {
    Tensor tensor = block_.tensor(y);
    tensor.name += suffix;
    tensor.port = Port::none;
    return block_.add(std::move(tensor));
  };
  const bool adapted = options_.adapters && options_.adapters->reach(l.target);
  const TensorId base = adapted ? like_y("_base") : y;
  const TensorId x = operand(l.x, options_.costs.quantise_traffic, operands_);
  const TensorId w = weight_operand(l.w);
  gemm(name, x, w, base,
       {.m = rows.dims, .n = l.out_dims, .k = l.in_dims, .groups = rows.groups, .precision = options_.gemm_precision});
  if (!adapted) {
    return;
  }
  const Adapter& adapter = adapters_.emplace(l.w.value.index(), this->adapter(name, l, rows)).first->second;
  const TensorId beside = like_y("_adapter");
  gemm(name + "_a", l.x, adapter.a.value, adapter.inner,
       {.m = rows.dims, .n = {Dim::adapter}, .k = l.in_dims, .groups = rows.groups});
  gemm(name + "_b", adapter.inner, adapter.b.value, beside,
       {.m = rows.dims, .n = l.out_dims, .k = {Dim::adapter}, .groups = rows.groups});
  elementwise(name + "_add", {base, beside}, {y}, {{y, options_.costs.adapter_traffic}},
              options_.costs.adapter_launches);
}

std::vector<std::optional<TensorId>> BlockBuilder::linear_backward(const std::vector<Linear>& maps, const Rows& rows) {
  std::vector<std::optional<TensorId>> more;
  for (const Linear& l : maps) {
    const TensorId d_y = operand(l.d_y, options_.costs.quantise_gradient_traffic, operands_);
    const TensorId w = weight_operand(l.w);
    gemm(
        l.name + "_dgrad", d_y, w, l.d_x,
        {.m = rows.dims, .n = l.in_dims, .k = l.out_dims, .groups = rows.groups, .precision = options_.gemm_precision});
    const auto adapter = adapters_.find(l.w.value.index());
    more.push_back(adapter == adapters_.end() ? std::nullopt
                                              : std::optional(adapter_input_gradient(l, adapter->second, rows)));
  }
  for (const Linear& l : maps) {
    if (l.w.grad) {
      gemm(l.name + "_wgrad", input_again(l.x), operand(l.d_y, options_.costs.quantise_gradient_traffic, operands_),
           *l.w.grad,
           {.m = l.in_dims,
            .n = l.out_dims,
            .k = rows.dims,
            .groups = rows.groups,
            .precision = options_.gemm_precision});
    }
    const auto adapter = adapters_.find(l.w.value.index());
    if (adapter != adapters_.end()) {
      const Adapter& a = adapter->second;
      gemm(l.name + "_b_wgrad", a.inner, a.d_y, *a.b.grad,
           {.m = {Dim::adapter}, .n = l.out_dims, .k = rows.dims, .groups = rows.groups});
      gemm(l.name + "_a_wgrad", l.x, a.d_inner, *a.a.grad,
           {.m = l.in_dims, .n = {Dim::adapter}, .k = rows.dims, .groups = rows.groups});
    }
  }
  return more;
}

TensorId BlockBuilder::adapter_input_gradient(const Linear& l, Adapter& adapter, const Rows& rows) {
  const auto another = [this](TensorId id, const std::string& name) {
    Tensor tensor = block_.tensor(id);
    tensor.name = name;
    tensor.port = Port::none;
    return block_.add(std::move(tensor));
  };
  constexpr double kScale = 4.0;  // bf16, read and written (peft tuners/lora/layer.py: B(A(x)) * scaling)
  adapter.d_y = another(l.d_y, block_.tensor(l.d_y).name + "_" + l.name + "_scaled");
  add({.name = l.name + "_scale",
       .work = ElementwiseWork{.traffic = {{l.d_y, kScale}}, .launches = 1},
       .reads = {l.d_y},
       .writes = {adapter.d_y}});
  adapter.d_inner = another(adapter.inner, "d_" + block_.tensor(adapter.inner).name);
  adapter.d_x = another(l.d_x, block_.tensor(l.d_x).name + "_" + l.name + "_adapter");
  gemm(l.name + "_b_dgrad", adapter.d_y, adapter.b.value, adapter.d_inner,
       {.m = rows.dims, .n = {Dim::adapter}, .k = l.out_dims, .groups = rows.groups});
  gemm(l.name + "_a_dgrad", adapter.d_inner, adapter.a.value, adapter.d_x,
       {.m = rows.dims, .n = l.in_dims, .k = {Dim::adapter}, .groups = rows.groups});
  return adapter.d_x;
}

std::vector<TensorId> BlockBuilder::joined(std::vector<TensorId> ids,
                                           const std::vector<std::optional<TensorId>>& more) {
  for (const std::optional<TensorId>& id : more) {
    if (id) {
      ids.push_back(*id);
    }
  }
  return ids;
}

std::vector<Traffic> BlockBuilder::fan_in(std::vector<Traffic> traffic, const std::vector<TensorId>& ids) const {
  constexpr double kSum = 6.0;  // bf16, two read and one written
  for (const auto& [weight, adapter] : adapters_) {
    if (std::find(ids.begin(), ids.end(), adapter.d_x) != ids.end()) {
      traffic.push_back({.tensor = adapter.d_x, .bytes_per_element = kSum});
    }
  }
  return traffic;
}

void BlockBuilder::plain_linear_backward(const Linear& l) {
  const Rows rows;
  gemm(l.name + "_dgrad", l.d_y, l.w.value, l.d_x, {.m = rows.dims, .n = l.in_dims, .k = l.out_dims});
  if (l.w.grad) {
    gemm(l.name + "_wgrad", l.x, l.d_y, *l.w.grad, {.m = l.in_dims, .n = l.out_dims, .k = rows.dims});
  }
}

void BlockBuilder::accumulate(const std::string& name, const std::vector<Weight>& weights) {
  Op op{.name = name};
  ElementwiseWork work{.launches = 0};
  const double bytes = 2.0 + 2.0 * static_cast<double>(options_.costs.gradient_bytes);
  const auto add_up = [&](const Weight& w) {
    if (w.grad) {
      op.reads.push_back(*w.grad);
      op.writes.push_back(*w.total);
      work.traffic.push_back({.tensor = *w.grad, .bytes_per_element = bytes});
      ++work.launches;
    }
  };
  for (const Weight& w : weights) {
    add_up(w);
    const auto adapter = adapters_.find(w.value.index());
    if (adapter != adapters_.end()) {
      add_up(adapter->second.a);
      add_up(adapter->second.b);
    }
  }
  if (!op.reads.empty()) {
    op.work = std::move(work);
    add(std::move(op));
  }
}

}  // namespace ulysim::workload
