#include "sim/workload/tensor.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace ulysim::workload {

bool Extent::split_by(MeshAxis axis) const {
  return std::find(split.begin(), split.end(), axis) != split.end();
}

const Extent* Tensor::find(Dim dim) const {
  const auto it = std::find_if(shape.begin(), shape.end(), [dim](const Extent& e) { return e.dim == dim; });
  return it == shape.end() ? nullptr : &*it;
}

Extent* Tensor::find(Dim dim) {
  const auto it = std::find_if(shape.begin(), shape.end(), [dim](const Extent& e) { return e.dim == dim; });
  return it == shape.end() ? nullptr : &*it;
}

const Extent* Tensor::rows() const {
  const Extent* tokens = find(Dim::tokens);
  return tokens != nullptr ? tokens : find(Dim::slots);
}

Extent* Tensor::rows() {
  Extent* tokens = find(Dim::tokens);
  return tokens != nullptr ? tokens : find(Dim::slots);
}

bool is_matrix(const Tensor& tensor) {
  return tensor.parameter && tensor.shape.size() >= 2;
}

std::int64_t local_size(const Extent& extent, const Mesh& mesh) {
  std::int64_t parts = 1;
  for (const MeshAxis axis : extent.split) {
    parts *= mesh.size(axis);
  }
  const std::int64_t average = (extent.padded_size() + parts - 1) / parts;
  return extent.busiest == 1.0 ? average : std::lround(static_cast<double>(average) * extent.busiest);
}

namespace {

std::int64_t checked_product(std::int64_t a, std::int64_t b, const Tensor& tensor) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw RangeError(fmt::format("tensor {} is larger than can be counted", tensor.name));
  }
  return product;
}

}  // namespace

std::int64_t local_elements(const Tensor& tensor, const Mesh& mesh) {
  std::int64_t product = 1;
  for (const Extent& extent : tensor.shape) {
    product = checked_product(product, local_size(extent, mesh), tensor);
  }
  return product;
}

Bytes local_bytes(const Tensor& tensor, const Mesh& mesh) {
  return bytes_of(tensor, local_elements(tensor, mesh));
}

Bytes bytes_of(const Tensor& tensor, std::int64_t elements) {
  const std::int64_t blocks = (elements + tensor.block_elements - 1) / tensor.block_elements;
  return Bytes(checked_product(blocks, tensor.element_bytes, tensor));
}

std::int64_t global_elements(const Tensor& tensor) {
  std::int64_t product = 1;
  for (const Extent& extent : tensor.shape) {
    product = checked_product(product, extent.padded_size() / extent.replicas, tensor);
  }
  return product;
}

}  // namespace ulysim::workload
