// Local sizes of a tensor by pencil.

#include <gtest/gtest.h>

#include "sim/base/check.h"
#include "sim/workload/tensor.h"

namespace ulysim::workload {
namespace {

Mesh six() {
  Mesh mesh;
  mesh.set_size(MeshAxis::ulysses, 3);
  mesh.set_size(MeshAxis::ring, 2);
  return mesh;
}

TEST(Tensor, a_split_divides_and_rounds_up) {
  const Extent extent{.dim = Dim::tokens, .size = 100, .split = {MeshAxis::ring, MeshAxis::ulysses}};
  EXPECT_EQ(local_size(extent, six()), 17) << "100 / 6, the last rank padded";
  EXPECT_EQ(local_size({.dim = Dim::tokens, .size = 100, .split = {MeshAxis::data}}, six()), 100) << "data is 1";
}

TEST(Tensor, bytes_are_the_product_of_local_sizes) {
  const Tensor tensor{.name = "q",
                      .shape = {{.dim = Dim::tokens, .size = 96, .split = {MeshAxis::ring}},
                                {.dim = Dim::heads, .size = 12, .split = {MeshAxis::ulysses}},
                                {.dim = Dim::head_dim, .size = 64}},
                      .element_bytes = 4};
  EXPECT_EQ(local_elements(tensor, six()), 48 * 4 * 64);
  EXPECT_EQ(local_bytes(tensor, six()).value(), 48 * 4 * 64 * 4);
  EXPECT_EQ(global_elements(tensor), 96 * 12 * 64);
}

TEST(Tensor, repeated_heads_count_once_globally) {
  const Tensor tensor{
      .name = "k",
      .shape = {{.dim = Dim::kv_heads, .size = 6, .split = {MeshAxis::ulysses, MeshAxis::ring}, .replicas = 3}}};
  EXPECT_EQ(local_elements(tensor, six()), 1);
  EXPECT_EQ(global_elements(tensor), 2);
}

TEST(Tensor, sizes_past_int64_are_refused) {
  const Tensor tensor{.name = "huge",
                      .shape = {{.dim = Dim::tokens, .size = std::int64_t{1} << 40U},
                                {.dim = Dim::vocab, .size = std::int64_t{1} << 23U}}};
  EXPECT_THROW((void)local_elements(tensor, Mesh{}), RangeError) << "2^63";
  Tensor bytes = tensor;
  bytes.shape[1].size /= 2;
  EXPECT_EQ(local_elements(bytes, Mesh{}), std::int64_t{1} << 62U);
  EXPECT_THROW((void)local_bytes(bytes, Mesh{}), RangeError) << "2^62 elements of 2 bytes";
}

}  // namespace
}  // namespace ulysim::workload
