// Data parallelism: each replica has its own sequences, and gradients that are sums over the replicas.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

TEST(Data, splits_sequences_and_leaves_gradients_partial) {
  Plan plan = lab::plain_plan(8192);
  plan.micro_batch = 3;
  plan.mesh.set_size(MeshAxis::data, 4);
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"data"});
  for (const Tensor& each : lab::layer_of(graph).tensors) {
    if (const Extent* batch = each.find(Dim::batch)) {
      EXPECT_EQ(batch->size, 12) << each.name;
      EXPECT_EQ(local_size(*batch, graph.mesh), 3) << each.name;
    } else {
      EXPECT_EQ(each.partial.contains(MeshAxis::data), each.kind == MemoryKind::gradients) << each.name;
    }
  }
}

TEST(Data, communicates_nothing_by_itself) {
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(MeshAxis::data, 4);
  const OpGraph graph = lab::bench("llama-3.1-8b", plan).after({"data"});
  for (const BlockTemplate& block : graph.templates) {
    for (const Body& body : block.bodies) {
      for (const Op& op : body.ops) {
        EXPECT_EQ(lab::bytes_sent(graph, block, body, op), 0) << op.name;
      }
    }
  }
}

}  // namespace
}  // namespace ulysim::strategies
