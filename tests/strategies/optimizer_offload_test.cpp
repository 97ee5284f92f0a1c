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
  std::map<bool, std::int64_t> bytes;  // by whether they are pinned
  for (const Tensor& each : optimizer.tensors) {
    if (each.kind == MemoryKind::optimizer_states) {
      EXPECT_EQ(each.space, Space::host);
      bytes[each.pinned] += local_bytes(each, graph.mesh).value();
    }
  }
  // Pageable: fp32 master and moments; pinned: the gradients, fp32 and bf16.
  EXPECT_EQ(bytes, (std::map<bool, std::int64_t>{{false, 12 * shard}, {true, 6 * shard}}));
  const Op& adam = optimizer.body(Phase::update).ops.front();
  EXPECT_TRUE(std::holds_alternative<HostWork>(adam.work));
  EXPECT_EQ(host_traffic_of(graph, optimizer, optimizer.body(Phase::update), adam).value(), 42 * shard);
}

/// Bytes of a body's copies by stream; all of them when `name` is empty.
std::map<Stream, std::int64_t> swapped(const OpGraph& graph, const BlockTemplate& block, Phase phase) {
  std::map<Stream, std::int64_t> bytes;
  for (const Op& op : block.body(phase).ops) {
    if (std::holds_alternative<CopyWork>(op.work)) {
      bytes[op.stream] += payload_of(graph, block, block.body(phase), op).value();
    }
  }
  return bytes;
}

TEST(OptimizerOffload, states_on_drives_pass_through_the_buffers_chunk_by_chunk) {
  // 16 B a parameter in (fp32 master, moments, gradient), 12 B out; 4 B of gradient out as it arrives.
  lab::Bench bench = lab::bench("llama-3.1-8b", offloading(3));
  bench.plan.optimizer_offload = Offload::nvme;
  const std::int64_t shard = (count_parameters(bench.model).total + 7) / 8;
  bench.framework.optimizer_chunk_elements.value = shard / 3 + 1;
  for (const std::int64_t overlap : {0, 1}) {
    bench.framework.optimizer_swap->overlap.value = overlap;
    const OpGraph graph = bench.after({"data", "zero", "optimizer-offload"});
    const BlockTemplate& optimizer = graph.templates.back();
    const auto bytes = swapped(graph, optimizer, Phase::update);
    // Each of three chunks is rounded up to whole elements.
    EXPECT_NEAR(static_cast<double>(bytes.at(Stream::nvme_read)), 16.0 * static_cast<double>(shard), 16.0 * 3);
    EXPECT_NEAR(static_cast<double>(bytes.at(Stream::nvme_write)), 12.0 * static_cast<double>(shard), 12.0 * 3);
    EXPECT_NEAR(static_cast<double>(bytes.at(Stream::host_to_device)), 2.0 * static_cast<double>(shard), 2.0 * 3);
    EXPECT_EQ(swapped(graph, lab::layer_of(graph), Phase::backward).at(Stream::nvme_write), 4 * kShard);
    std::int64_t updates = 0;
    std::map<Space, std::int64_t> held;
    for (const Op& op : optimizer.body(Phase::update).ops) {
      updates += std::holds_alternative<HostWork>(op.work) && !op.writes.empty() ? 1 : 0;
      EXPECT_EQ(op.stream == Stream::nvme_read && op.host_waits, op.stream == Stream::nvme_read && overlap == 0);
    }
    for (const Tensor& each : optimizer.tensors) {
      if (each.persistent && !each.shared) {
        held[each.space] += local_bytes(each, graph.mesh).value();
      }
    }
    EXPECT_EQ(updates, 3);
    EXPECT_NEAR(static_cast<double>(held[Space::nvme]), 16.0 * static_cast<double>(shard), 16.0 * 3);
    // Four fp32 buffers of a chunk, and the bf16 sum of gradients.
    EXPECT_NEAR(static_cast<double>(held[Space::host]), (16.0 / 3 + 2) * static_cast<double>(shard), 100.0);
    EXPECT_THAT(verify(graph), testing::IsEmpty());
  }
}

TEST(OptimizerOffload, only_a_stack_that_swaps_has_states_on_drives) {
  lab::Bench bench = lab::bench("llama-3.1-8b", offloading(3));
  bench.plan.optimizer_offload = Offload::nvme;
  EXPECT_TRUE(lab::pass("optimizer-offload").check(bench.context()).empty());
  bench.framework = lab::framework("torchtitan");
  EXPECT_EQ(lab::pass("optimizer-offload").check(bench.context()).size(), 1U);
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
    for (const Offload where : {Offload::cpu, Offload::nvme}) {
      Plan plan = offloading(stage);
      plan.optimizer_offload = where;
      EXPECT_THAT(verify(lab::bench("llama-3.1-8b", plan).after({"data", "zero", "optimizer-offload"})),
                  testing::IsEmpty())
          << "stage " << stage;
    }
  }
}

}  // namespace
}  // namespace ulysim::strategies
