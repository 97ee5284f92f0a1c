// ZeRO-Offload (arXiv 2101.06840) as DeepSpeed's stage 3 does it: per micro-batch each gradient shard out and the
// running sum back in bf16, the sum out once more in fp32 at the last; Adam on the node's cores; weights back in bf16.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

Plan offloading(std::int64_t stage) {
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(MeshAxis::data, 8);
  plan.zero = stage;
  plan.accumulation = 2;
  plan.optimizer_offload = Offload::cpu;
  return plan;
}

// One layer of llama-3.1-8b: matrices and two norms, an eighth of it on each GPU.
constexpr std::int64_t kShard = (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096) / 8;

std::map<std::pair<Stream, When>, std::int64_t> copied(const OpGraph& graph) {
  const BlockTemplate& layer = lab::layer_of(graph);
  const Body& body = layer.body(Phase::backward);
  std::map<std::pair<Stream, When>, std::int64_t> bytes;
  for (const Op& op : body.ops) {
    if (op.purpose == Purpose::optimizer_offload) {
      bytes[{op.stream, op.when}] += payload_of(graph, layer, body, op).value();
    }
  }
  return bytes;
}

TEST(OptimizerOffload, gradient_shards_go_out_and_come_back) {
  if (!lab::has("data") || !lab::has("zero")) {
    GTEST_SKIP() << "nothing shards the gradients";
  }
  const auto bytes = copied(lab::bench("llama-3.1-8b", offloading(3)).after({"data", "zero", "optimizer-offload"}));
  EXPECT_EQ(bytes.at({Stream::device_to_host, When::every_micro_batch}), 2 * kShard);
  EXPECT_EQ(bytes.at({Stream::host_to_device, When::every_micro_batch}), 2 * kShard);
  EXPECT_EQ(bytes.at({Stream::device_to_host, When::last_micro_batch}), 4 * kShard);
}

TEST(OptimizerOffload, states_stand_in_host_memory_and_the_host_updates_them) {
  if (!lab::has("data") || !lab::has("zero")) {
    GTEST_SKIP() << "nothing shards the states";
  }
  const lab::Bench bench = lab::bench("llama-3.1-8b", offloading(3));
  const OpGraph graph = bench.after({"data", "zero", "optimizer-offload"});
  const BlockTemplate& optimizer = graph.templates.back();
  const std::int64_t shard = (count_parameters(bench.model).total + 7) / 8;
  for (const Tensor& each : optimizer.tensors) {
    if (each.kind == MemoryKind::optimizer_states) {
      EXPECT_EQ(each.space, Space::host);
      EXPECT_EQ(local_bytes(each, graph.mesh).value(), 18 * shard);
    }
  }
  const Op& adam = optimizer.body(Phase::update).ops.front();
  EXPECT_TRUE(std::holds_alternative<HostWork>(adam.work));
  EXPECT_EQ(host_traffic_of(graph, optimizer, optimizer.body(Phase::update), adam).value(), 42 * shard);
}

TEST(OptimizerOffload, needs_sharded_states) {
  const lab::Bench bench = lab::bench("llama-3.1-8b", offloading(0));
  EXPECT_EQ(lab::pass("optimizer-offload").check(bench.context()).size(), 1U);
}

TEST(OptimizerOffload, every_stage_balances_its_books) {
  if (!lab::has("data") || !lab::has("zero")) {
    GTEST_SKIP() << "nothing shards the gradients";
  }
  for (const std::int64_t stage : {1, 2, 3}) {
    EXPECT_THAT(verify(lab::bench("llama-3.1-8b", offloading(stage)).after({"data", "zero", "optimizer-offload"})),
                testing::IsEmpty())
        << "stage " << stage;
  }
}

}  // namespace
}  // namespace ulysim::strategies
