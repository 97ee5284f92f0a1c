// Checkpoints in host memory: out in forward, back in before backward, h·s·2 bytes each way for every layer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

Plan offloading() {
  Plan plan = lab::plain_plan(65536);
  plan.recompute = Recompute::full;
  plan.checkpoint_offload = Offload::cpu;
  return plan;
}

std::int64_t copied(const OpGraph& graph, Phase phase) {
  const BlockTemplate& layer = lab::layer_of(graph);
  std::int64_t bytes = 0;
  for (const Op& op : layer.body(phase).ops) {
    if (op.purpose == Purpose::checkpoint_offload && std::holds_alternative<CopyWork>(op.work)) {
      bytes += payload_of(graph, layer, layer.body(phase), op).value();
    }
  }
  return bytes;
}

TEST(CheckpointOffload, moves_each_layers_input_out_and_back) {
  if (!lab::has("recompute")) {
    GTEST_SKIP() << "recompute is not in the catalogue";
  }
  const OpGraph graph = lab::bench("llama-3.1-8b", offloading()).after({"recompute", "checkpoint-offload"});
  EXPECT_EQ(copied(graph, Phase::forward), 65536LL * 4096 * 2);
  EXPECT_EQ(copied(graph, Phase::backward), 65536LL * 4096 * 2);
}

TEST(CheckpointOffload, frees_the_input_on_the_gpu_in_forward) {
  if (!lab::has("recompute")) {
    GTEST_SKIP() << "recompute is not in the catalogue";
  }
  const OpGraph graph = lab::bench("llama-3.1-8b", offloading()).after({"recompute", "checkpoint-offload"});
  const BlockTemplate& layer = lab::layer_of(graph);
  std::vector<std::string> freed;
  for (const Op& op : layer.body(Phase::forward).ops) {
    for (const TensorId id : op.frees) {
      freed.push_back(layer.tensor(id).name);
    }
  }
  EXPECT_THAT(freed, testing::Contains("x"));
  EXPECT_THAT(freed, testing::Not(testing::Contains("x_host"))) << "that one waits in host memory for backward";
}

TEST(CheckpointOffload, a_blocking_copy_holds_the_host) {
  if (!lab::has("recompute")) {
    GTEST_SKIP() << "recompute is not in the catalogue";
  }
  lab::Bench bench = lab::bench("llama-3.1-8b", offloading());
  bench.framework = lab::framework("arctic-training");
  const OpGraph graph = bench.after({"recompute", "checkpoint-offload"});
  std::int64_t copies = 0;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    for (const Op& op : lab::layer_of(graph).body(phase).ops) {
      if (op.purpose == Purpose::checkpoint_offload) {
        EXPECT_TRUE(op.host_waits);
        EXPECT_EQ(op.stream, Stream::compute);
        EXPECT_EQ(std::get<CopyWork>(op.work).buffer, CopyWork::Buffer::pageable);
        ++copies;
      }
    }
  }
  EXPECT_EQ(copies, 2);
}

/// Layers by whether their inputs leave the GPU.
std::map<bool, std::int64_t> layers_by_leaving(const OpGraph& graph) {
  std::map<bool, std::int64_t> out;
  for (const BlockTemplate& block : graph.templates) {
    if (block.kind == BlockKind::layer) {
      const auto& ops = block.body(Phase::forward).ops;
      out[std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.name == "offload_checkpoint"; })] +=
          block.instances;
    }
  }
  return out;
}

TEST(CheckpointOffload, the_newest_stay) {
  // DeepSpeed keeps the last of five: four leave. Two stages of a pipeline: the last layer of each stays.
  lab::Bench bench = lab::bench("llama-3.1-8b", offloading(), 5);
  ASSERT_EQ(bench.framework.checkpoint_offload_keep_last.value, 1);
  EXPECT_EQ(layers_by_leaving(bench.after({"recompute", "checkpoint-offload"})),
            (std::map<bool, std::int64_t>{{false, 1}, {true, 4}}));
  bench.framework.checkpoint_offload_keep_last.value = 9;
  EXPECT_EQ(layers_by_leaving(bench.after({"recompute", "checkpoint-offload"})),
            (std::map<bool, std::int64_t>{{false, 5}}));
  bench.framework.checkpoint_offload_keep_last.value = 1;
  bench.plan.mesh.set_size(MeshAxis::pipeline, 2);
  const OpGraph staged = bench.after({"pipeline", "recompute", "checkpoint-offload"});
  EXPECT_EQ(layers_by_leaving(staged), (std::map<bool, std::int64_t>{{false, 2}, {true, 3}}));
}

TEST(CheckpointOffload, a_layer_waits_for_a_place_in_the_stash) {
  lab::Bench bench = lab::bench("llama-3.1-8b", offloading());
  bench.framework.checkpoint_offload_stash.emplace().value = 5;
  const OpGraph graph = bench.after({"recompute", "checkpoint-offload"});
  EXPECT_EQ(graph.credit_windows[static_cast<std::size_t>(CreditPool::checkpoint_stash)], 5);
  const auto& ops = lab::layer_of(graph).body(Phase::forward).ops;
  EXPECT_EQ(ops[0].name, "offload_checkpoint");
  EXPECT_EQ(ops[1].acquire, CreditPool::checkpoint_stash) << "the layer's first kernel";
  EXPECT_TRUE(ops.back().release.contains(CreditPool::checkpoint_stash));
  EXPECT_THAT(ops.back().frees, testing::ElementsAre(ops[0].reads[0])) << "the input goes when copy and layer are done";
  EXPECT_THAT(verify(graph), testing::IsEmpty());
}

TEST(CheckpointOffload, goes_on_to_the_drives_and_back_through_two_buffers) {
  lab::Bench bench = lab::bench("llama-3.1-8b", offloading(), 3);
  bench.plan.checkpoint_offload = Offload::nvme;
  const OpGraph graph = bench.after({"recompute", "checkpoint-offload"});
  const BlockTemplate& layer = lab::layer_of(graph);
  std::map<Stream, std::int64_t> bytes;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    for (const Op& op : layer.body(phase).ops) {
      if (std::holds_alternative<CopyWork>(op.work)) {
        bytes[op.stream] += payload_of(graph, layer, layer.body(phase), op).value();
      }
    }
  }
  constexpr std::int64_t kOne = 65536LL * 4096 * 2;
  EXPECT_EQ(bytes, (std::map<Stream, std::int64_t>{{Stream::device_to_host, kOne},
                                                   {Stream::host_to_device, kOne},
                                                   {Stream::nvme_read, kOne},
                                                   {Stream::nvme_write, kOne}}));
  EXPECT_EQ(graph.credit_windows[static_cast<std::size_t>(CreditPool::checkpoint_store)], 2);
  EXPECT_EQ(graph.credit_windows[static_cast<std::size_t>(CreditPool::checkpoint_fetch)], 2) << "one is read ahead";
  EXPECT_THAT(verify(graph), testing::IsEmpty());
}

TEST(CheckpointOffload, without_checkpoints_there_is_nothing_to_move) {
  Plan plan = offloading();
  plan.recompute = Recompute::none;
  const lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  EXPECT_EQ(lab::pass("checkpoint-offload").check(bench.context()).size(), 1U);
}

TEST(CheckpointOffload, its_credit_comes_back_where_zero_gathers_for_the_same_op) {
  if (!lab::has("recompute") || !lab::has("zero")) {
    GTEST_SKIP() << "a part of the combination is not in the catalogue";
  }
  // With no persistence threshold the norm weights are gathered too, and the last op that reads the checkpoint is the
  // last that reads them: two credits end at one op.
  Plan plan = offloading();
  plan.zero = 3;
  plan.mesh.set_size(MeshAxis::data, 4);
  lab::Bench bench = lab::bench("llama-3.1-8b", plan);
  bench.framework.persistence_elements.value = 0;
  EXPECT_THAT(verify(bench.after({"data", "recompute", "checkpoint-offload", "zero"})), testing::IsEmpty());
}

}  // namespace
}  // namespace ulysim::strategies
