#include "calibration/cuda/cudnn_graph.h"

#include <cudnn_graph.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <optional>

#include "calibration/cuda/cudnn_descriptor.h"

namespace ulysim::calibration::cuda {

void check_cudnn(int status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) {
    std::array<char, 2048> message{};
    cudnnGetLastErrorString(message.data(), message.size());
    throw CudnnError(status, std::string("cuDNN, ") + what + ": " +
                                 cudnnGetErrorString(static_cast<cudnnStatus_t>(status)) + " " + message.data());
  }
}

Descriptor::Descriptor(int type) {
  check_cudnn(cudnnBackendCreateDescriptor(static_cast<cudnnBackendDescriptorType_t>(type), &descriptor_),
              "a new descriptor");
}
Descriptor::Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) {
    cudnnBackendDestroyDescriptor(descriptor_);
  }
}
Descriptor& Descriptor::set(int attribute, int type, std::int64_t count, const void* values) {
  check_cudnn(cudnnBackendSetAttribute(descriptor_, static_cast<cudnnBackendAttributeName_t>(attribute),
                                       static_cast<cudnnBackendAttributeType_t>(type), count, values),
              "an attribute");
  return *this;
}
Descriptor& Descriptor::set_descriptor(int attribute, void* value) {
  return set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}
Descriptor& Descriptor::set_count(int attribute, std::int64_t value) {
  return set(attribute, CUDNN_TYPE_INT64, 1, &value);
}
Descriptor& Descriptor::set_data_type(int attribute, int value) {
  return set(attribute, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
Descriptor& Descriptor::finish(const char* what) {
  check_cudnn(cudnnBackendFinalize(descriptor_), what);
  return *this;
}
std::int64_t Descriptor::read(int attribute, int type, std::int64_t most, void* values) const {
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(descriptor_, static_cast<cudnnBackendAttributeName_t>(attribute),
                                       static_cast<cudnnBackendAttributeType_t>(type), most, &count, values),
              "reading an attribute");
  return count;
}

namespace {

// cuDNN's order of the axes: sequence (of a batch), head, row, column.
using Four = std::array<std::int64_t, 4>;

struct Tensor {
  std::int64_t id{};
  Four dims{};
  void* descriptor{};
};

enum class Kept : std::uint8_t { virtual_only, in_memory, by_value };

Four packed(const Four& d) {
  return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
}
/// Tokens-major memory: [rows][heads][columns].
Four tokens_major(const Four& d) {
  return {d[1] * d[2] * d[3], d[3], d[1] * d[3], 1};
}

class Builder {
 public:
  Tensor tensor(std::int64_t id, const Four& dims, const Four& strides, cudnnDataType_t type, Kept kept) {
    Descriptor& made = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const bool is_virtual = kept == Kept::virtual_only;
    const bool by_value = kept == Kept::by_value;
    constexpr std::int64_t kAlignment = 16;
    made.set_data_type(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims.data())
        .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data())
        .set_count(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
        .set_count(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual)
        .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value)
        .finish("a tensor");
    return {.id = id, .dims = dims, .descriptor = made.get()};
  }
  Tensor given(PlanTensor id, const Four& dims, const Four& strides, cudnnDataType_t type) {
    return tensor(static_cast<std::int64_t>(id), dims, strides, type, Kept::in_memory);
  }
  Tensor value(const Four& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(next_++, dims, packed(dims), type, Kept::virtual_only);
  }
  Tensor transposed(const Four& dims, const Four& strides) {
    return tensor(next_++, dims, strides, CUDNN_DATA_BFLOAT16, Kept::virtual_only);
  }
  Tensor scalar(float number) {
    const Tensor made = tensor(next_++, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Kept::by_value);
    scalars.emplace_back(made.id, number);
    return made;
  }
  Tensor scratch_tensor(const Four& dims, PlanScratch::Before before) {
    const Tensor made = tensor(next_++, dims, packed(dims), CUDNN_DATA_FLOAT, Kept::in_memory);
    scratch.push_back({.tensor = made.id, .bytes = 4 * dims[0] * dims[1] * dims[2] * dims[3], .before = before});
    return made;
  }

  void matmul(const Tensor& a, const Tensor& b, const Tensor& to) {
    Descriptor& how = parts_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set_data_type(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finish("a product");
    operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        .set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor)
        .set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor)
        .set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_CDESC, to.descriptor)
        .set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC, how.get())
        .finish("the operation of a product");
  }
  struct Pointwise {
    cudnnPointwiseMode_t mode{};
    std::optional<Tensor> second{};
    std::optional<Tensor> condition{};
    cudnnDataType_t precision{CUDNN_DATA_FLOAT};
    std::optional<std::int64_t> axis{};
  };
  void pointwise(const Pointwise& what, const Tensor& first, const Tensor& to) {
    Descriptor& how = parts_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &what.mode)
        .set_data_type(CUDNN_ATTR_POINTWISE_MATH_PREC, what.precision);
    if (what.axis) {
      how.set_count(CUDNN_ATTR_POINTWISE_AXIS, *what.axis);
    }
    how.finish("a pointwise function");
    Descriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how.get())
        .set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, first.descriptor);
    if (what.second) {
      operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, what.second->descriptor);
    }
    if (what.condition) {
      operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, what.condition->descriptor);
    }
    operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to.descriptor).finish("a pointwise operation");
  }
  void unary(cudnnPointwiseMode_t mode, const Tensor& from, const Tensor& to) { pointwise({.mode = mode}, from, to); }
  void binary(cudnnPointwiseMode_t mode, const Tensor& a, const Tensor& b, const Tensor& to) {
    pointwise({.mode = mode, .second = b}, a, to);
  }
  void reduce(cudnnReduceTensorOp_t operation, const Tensor& from, const Tensor& to) {
    Descriptor& how = parts_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operation)
        .set_data_type(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
        .finish("a reduction");
    operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        .set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, from.descriptor)
        .set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to.descriptor)
        .set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how.get())
        .finish("the operation of a reduction");
  }
  void reshape(const Tensor& from, const Tensor& to) {
    operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
        .set_descriptor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, from.descriptor)
        .set_descriptor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to.descriptor)
        .finish("a reshape");
  }
  /// The lowest number where the column is above the row, as cudnn-frontend's own graphs have it: in a tile of masked
  /// keys alone minus infinity would be subtracted from itself.
  Tensor masked(const Tensor& scores) {
    const Tensor row = value(scores.dims, CUDNN_DATA_INT32);
    const Tensor column = value(scores.dims, CUDNN_DATA_INT32);
    const Tensor seen = value(scores.dims, CUDNN_DATA_BOOLEAN);
    const Tensor result = value(scores.dims);
    pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = 2}, scores, row);
    pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = 3}, scores, column);
    pointwise({.mode = CUDNN_POINTWISE_CMP_GE, .second = column, .precision = CUDNN_DATA_BOOLEAN}, row, seen);
    pointwise({.mode = CUDNN_POINTWISE_BINARY_SELECT,
               .second = scalar(std::numeric_limits<float>::lowest()),
               .condition = seen},
              scores, result);
    return result;
  }

  Descriptor finish(void* handle) {
    std::vector<void*> all;
    all.reserve(operations_.size());
    for (const Descriptor& operation : operations_) {
      all.push_back(operation.get());
    }
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations(), all.data());
    if (handle != nullptr) {
      graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    }
    graph.finish("the graph");
    return graph;
  }
  [[nodiscard]] std::int64_t operations() const { return static_cast<std::int64_t>(operations_.size()); }

  std::deque<std::pair<std::int64_t, float>> scalars{};
  std::vector<PlanScratch> scratch{};

 private:
  // In the order of their making: a later one refers to earlier ones. Addresses must hold.
  std::deque<Descriptor> tensors_{};
  std::deque<Descriptor> parts_{};
  std::deque<Descriptor> operations_{};
  std::int64_t next_{100};
};

constexpr auto kBf16 = CUDNN_DATA_BFLOAT16;
constexpr auto kFloat = CUDNN_DATA_FLOAT;

struct Dims {
  explicit Dims(const BlockShape& s)
      : q{1, s.heads, s.queries, s.head_dim},
        k{1, s.kv_heads, s.keys, s.head_dim},
        k_transposed{1, s.kv_heads, s.head_dim, s.keys},
        scores{1, s.heads, s.queries, s.keys},
        scores_transposed{1, s.heads, s.keys, s.queries},
        rows{1, s.heads, s.queries, 1},
        k_of_all_heads{1, s.heads, s.keys, s.head_dim} {
    const Four strides = tokens_major(k);
    k_transposed_strides = {strides[0], strides[1], strides[3], strides[2]};
    scores_transposed_strides = {s.heads * s.queries * s.keys, s.queries * s.keys, 1, s.keys};
  }
  Four q, k, k_transposed, scores, scores_transposed, rows, k_of_all_heads;
  Four k_transposed_strides{};
  Four scores_transposed_strides{};
};

// FlashAttention's forward pass, operation by operation: S = scale·QKᵀ, mask, softmax, O = P·V.
void build_forward(Builder& g, const BlockShape& shape) {
  const Dims d(shape);
  const Tensor q = g.given(PlanTensor::q, d.q, tokens_major(d.q), kBf16);
  const Tensor kt = g.given(PlanTensor::k, d.k_transposed, d.k_transposed_strides, kBf16);
  const Tensor v = g.given(PlanTensor::v, d.k, tokens_major(d.k), kBf16);
  const Tensor out = g.given(PlanTensor::out, d.q, tokens_major(d.q), kBf16);
  const Tensor stats = g.given(PlanTensor::stats, d.rows, packed(d.rows), kFloat);
  const Tensor scale = g.scalar(1.0F / std::sqrt(static_cast<float>(shape.head_dim)));
  const Tensor products = g.value(d.scores);
  const Tensor scaled = g.value(d.scores);
  g.matmul(q, kt, products);
  g.binary(CUDNN_POINTWISE_MUL, products, scale, scaled);
  const Tensor scores = shape.mask == Mask::causal ? g.masked(scaled) : scaled;
  const Tensor most = g.value(d.rows);
  const Tensor shifted = g.value(d.scores);
  const Tensor exponentials = g.value(d.scores);
  const Tensor sum = g.value(d.rows);
  const Tensor log_sum = g.value(d.rows);
  const Tensor p = g.value(d.scores, kBf16);
  g.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
  g.binary(CUDNN_POINTWISE_SUB, scores, most, shifted);
  g.unary(CUDNN_POINTWISE_EXP, shifted, exponentials);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
  g.unary(CUDNN_POINTWISE_LOG, sum, log_sum);
  g.binary(CUDNN_POINTWISE_ADD, most, log_sum, stats);
  g.binary(CUDNN_POINTWISE_DIV, exponentials, sum, p);
  g.matmul(p, v, out);
}

// FlashAttention-2 (arXiv:2307.08691), algorithm 2.
void build_backward(Builder& g, const BlockShape& shape) {
  const Dims d(shape);
  const bool grouped = shape.heads != shape.kv_heads;
  const Tensor q = g.given(PlanTensor::q, d.q, tokens_major(d.q), kBf16);
  const Tensor kt = g.given(PlanTensor::k, d.k_transposed, d.k_transposed_strides, kBf16);
  const Tensor vt = g.given(PlanTensor::v, d.k_transposed, d.k_transposed_strides, kBf16);
  const Tensor out = g.given(PlanTensor::out, d.q, tokens_major(d.q), kBf16);
  const Tensor d_out = g.given(PlanTensor::d_out, d.q, tokens_major(d.q), kBf16);
  const Tensor dq = g.given(PlanTensor::dq, d.q, tokens_major(d.q), kBf16);
  const Tensor dk = g.given(PlanTensor::dk, d.k, tokens_major(d.k), kBf16);
  const Tensor dv = g.given(PlanTensor::dv, d.k, tokens_major(d.k), kBf16);
  const Tensor stats = g.given(PlanTensor::stats, d.rows, packed(d.rows), kFloat);
  const Tensor one = g.scalar(1.0F);
  const Tensor scale = g.scalar(1.0F / std::sqrt(static_cast<float>(shape.head_dim)));
  // The sum over the heads of a group is a reduction after the product.
  const auto product_per_kv_head = [&](const Tensor& a, const Tensor& b, const Tensor& to) {
    if (!grouped) {
      g.matmul(a, b, to);
      return;
    }
    const Tensor of_all_heads = g.value(d.k_of_all_heads, kBf16);
    g.matmul(a, b, of_all_heads);
    g.reduce(CUDNN_REDUCE_TENSOR_ADD, of_all_heads, to);
  };

  // delta = Σ dO·O; cuDNN wants it in memory.
  const Tensor elementwise = g.value(d.q);
  const Tensor row_sums = g.value(d.rows);
  const Tensor delta = g.scratch_tensor(d.rows, PlanScratch::Before::anything);
  g.binary(CUDNN_POINTWISE_MUL, d_out, out, elementwise);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, elementwise, row_sums);
  g.binary(CUDNN_POINTWISE_MUL, row_sums, one, delta);

  // P = exp(scale·QKᵀ − stats), dV = Pᵀ·dO. Masked before the subtraction: the order that cudnn-frontend uses.
  const Tensor products = g.value(d.scores);
  const Tensor scaled = g.value(d.scores);
  g.matmul(q, kt, products);
  g.binary(CUDNN_POINTWISE_MUL, products, scale, scaled);
  const Tensor scores = shape.mask == Mask::causal ? g.masked(scaled) : scaled;
  const Tensor shifted = g.value(d.scores);
  const Tensor p = g.value(d.scores);
  g.binary(CUDNN_POINTWISE_SUB, scores, stats, shifted);
  g.unary(CUDNN_POINTWISE_EXP, shifted, p);
  const Tensor p_transposed = g.transposed(d.scores_transposed, d.scores_transposed_strides);
  g.reshape(p, p_transposed);
  product_per_kv_head(p_transposed, d_out, dv);

  // dS = scale·P∘(dO·Vᵀ − delta), dK = dSᵀ·Q, dQ = dS·K.
  const Tensor dp = g.value(d.scores);
  const Tensor centred = g.value(d.scores);
  const Tensor weighted = g.value(d.scores);
  const Tensor ds = g.value(d.scores);
  g.matmul(d_out, vt, dp);
  g.binary(CUDNN_POINTWISE_SUB, dp, delta, centred);
  g.binary(CUDNN_POINTWISE_MUL, centred, p, weighted);
  g.binary(CUDNN_POINTWISE_MUL, weighted, scale, ds);
  const Tensor ds_transposed = g.transposed(d.scores_transposed, d.scores_transposed_strides);
  g.reshape(ds, ds_transposed);
  product_per_kv_head(ds_transposed, q, dk);
  const Tensor k = g.transposed(d.k, tokens_major(d.k));
  g.reshape(kt, k);
  // Blocks add to it, so it starts at zero (NVIDIA/cudnn-frontend, scaled_dot_product_flash_attention.h,
  // workspace_modifications_tensors_: dQ_accum is set to zero, softmax_sum is not).
  const Tensor dq_sum = g.scratch_tensor(d.q, PlanScratch::Before::zeros);
  g.matmul(ds, k, dq_sum);
  g.unary(CUDNN_POINTWISE_IDENTITY, dq_sum, dq);
}

}  // namespace

struct AttentionGraph::Parts {
  Builder builder{};
  std::optional<Descriptor> graph{};
};

AttentionGraph::AttentionGraph(const BlockShape& shape, PlanDirection direction, void* handle)
    : parts_(std::make_unique<Parts>()) {
  if (direction == PlanDirection::forward) {
    build_forward(parts_->builder, shape);
  } else {
    build_backward(parts_->builder, shape);
  }
  parts_->graph = parts_->builder.finish(handle);
}
AttentionGraph::AttentionGraph(AttentionGraph&&) noexcept = default;
AttentionGraph& AttentionGraph::operator=(AttentionGraph&&) noexcept = default;
AttentionGraph::~AttentionGraph() = default;

void* AttentionGraph::descriptor() const {
  return parts_->graph->get();
}
std::int64_t AttentionGraph::operations() const {
  return parts_->builder.operations();
}
const std::vector<PlanScratch>& AttentionGraph::scratch() const {
  return parts_->builder.scratch;
}
std::vector<std::pair<std::int64_t, void*>> AttentionGraph::scalars() const {
  std::vector<std::pair<std::int64_t, void*>> result;
  for (auto& [tensor, number] : parts_->builder.scalars) {
    result.emplace_back(tensor, &number);
  }
  return result;
}

}  // namespace ulysim::calibration::cuda
