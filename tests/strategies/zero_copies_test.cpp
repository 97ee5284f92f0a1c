// FSDP2's flat buffers (PyTorch fsdp/_fully_shard/_fsdp_collectives.py): what was gathered is copied out of one,
// gradients are copied into another, both by the stream that computes; each element is read and written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

// llama-3.1-8b, one layer: q and o 4096² each, k and v 4096·1024 each, three of 4096·14336; two norms.
constexpr double kMatrices = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336;
constexpr double kLayer = kMatrices + 2 * 4096;

lab::Bench fsdp2(std::int64_t copies) {
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(MeshAxis::data, 8);
  plan.zero = 3;
  lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  bench.framework = lab::framework("torchtitan");
  bench.framework.sharding_copies_compute.value = copies;
  return bench;
}

/// Bytes that the kernels of a layer whose names begin so move on `stream`.
double moved(const OpGraph& graph, Phase phase, std::string_view begin, Stream stream = Stream::compute) {
  const BlockTemplate& layer = lab::layer_of(graph);
  double bytes = 0;
  for (const Op& op : layer.body(phase).ops) {
    const auto* work = std::get_if<ElementwiseWork>(&op.work);
    if (work == nullptr || op.stream != stream || op.name.rfind(begin, 0) != 0) {
      continue;
    }
    for (const Traffic& each : work->traffic) {
      bytes += each.bytes_per_element * static_cast<double>(local_elements(layer.tensor(each.tensor), graph.mesh));
    }
  }
  return bytes;
}

TEST(ZeroCopies, gathered_weights_are_copied_out_between_the_kernels) {
  const OpGraph graph = fsdp2(1).after({"data", "zero"});
  EXPECT_THAT(verify(graph), testing::IsEmpty());
  EXPECT_EQ(moved(graph, Phase::forward, "copy_out"), 2 * 2 * kLayer) << "bf16, read and written";
  EXPECT_EQ(moved(graph, Phase::backward, "copy_out"), 2 * 2 * kLayer) << "gathered again";
  const OpGraph without = fsdp2(0).after({"data", "zero"});
  EXPECT_EQ(moved(without, Phase::forward, "copy_out"), 0);
  // No kernel reads a weight before it was copied out.
  const std::vector<Op>& ops = lab::layer_of(graph).body(Phase::forward).ops;
  const auto gather = std::find_if(ops.begin(), ops.end(),
                                   [](const Op& op) { return std::holds_alternative<CollectiveWork>(op.work); });
  ASSERT_NE(gather, ops.end());
  EXPECT_EQ((gather + 1)->name, "copy_out_" + gather->name);
  EXPECT_EQ((gather + 1)->reads, gather->writes);
}

TEST(ZeroCopies, float8_weights_are_copied_out_as_bytes) {
  lab::Bench bench = fsdp2(1);
  bench.plan.gemm_precision = kernel::Precision::fp8;
  EXPECT_EQ(moved(bench.after({"data", "zero"}), Phase::forward, "copy_out"), 2 * kMatrices + 2 * 2 * 2 * 4096);
}

TEST(ZeroCopies, gradients_are_copied_in_between_the_kernels) {
  // bf16 gradients are read and written as fp32, which is what travels.
  const OpGraph cast = fsdp2(1).after({"data", "zero"});
  EXPECT_EQ(moved(cast, Phase::backward, "cast_"), (2 + 4) * kLayer);
  const OpGraph beside = fsdp2(0).after({"data", "zero"});
  EXPECT_EQ(moved(beside, Phase::backward, "cast_"), 0);
  EXPECT_EQ(moved(beside, Phase::backward, "cast_", Stream::zero_reduce), (2 + 4) * kLayer);
  // What travels as it is is copied all the same.
  lab::Bench bench = fsdp2(1);
  bench.framework.gradient_wire_bytes.value = 2;
  const OpGraph plain = bench.after({"data", "zero"});
  EXPECT_THAT(verify(plain), testing::IsEmpty());
  EXPECT_EQ(moved(plain, Phase::backward, "cast_"), (2 + 2) * kLayer);
}

}  // namespace
}  // namespace ulysim::strategies
