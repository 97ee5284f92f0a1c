// Which question this answers: does the bubble of a pipeline come out as the formulas say, with the activations in
// flight that they say, folded as unfolded?

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/memory/accountant.h"
#include "sim/strategies/stages.h"
#include "sim/workload/verify.h"
#include "tests/engine/small_machine.h"

namespace ulysim::engine {
namespace {

using strategies::PipelineShape;
using workload::Phase;
using workload::PipelineWork;
using workload::Stream;

/// Stages of equal work: forward takes 100 ns and backward 200 ns of a stage, a share of that in each of its chunks.
/// Forward leaves 1000 bytes for backward.
struct Stages {
  PipelineShape shape{};
  std::int64_t message{};
  workload::OpGraph graph{};

  Stages(PipelineShape with, std::int64_t message_bytes) : shape(with), message(message_bytes) {
    graph.mesh.set_size(MeshAxis::pipeline, shape.stages);
    graph.micro_batches = shape.micro_batches;
    const std::int64_t parts = shape.stages * shape.chunks;
    for (std::int64_t part = 0; part < parts; ++part) {
      add_part(part, parts);
    }
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      workload::Role role{.name = "stage " + std::to_string(stage), .stage = stage};
      for (const strategies::Cell& cell : strategies::one_forward_one_backward(shape, stage)) {
        const std::int64_t part = cell.chunk * shape.stages + stage;
        role.program.push_back({.block_template = TemplateId(static_cast<std::size_t>(part)),
                                .block = static_cast<std::int32_t>(part),
                                .micro_batch = static_cast<std::int32_t>(cell.micro_batch),
                                .phase = cell.phase});
      }
      graph.roles.push_back(std::move(role));
    }
    workload::place_lifetimes(graph);
  }

 private:
  void add_part(std::int64_t part, std::int64_t parts) {
    workload::BlockTemplate block{.name = "part" + std::to_string(part), .instances = 1};
    const auto tensor = [&](const char* name, std::int64_t bytes) {
      return block.add({.name = name, .shape = {{.dim = workload::Dim::elements, .size = bytes}}, .element_bytes = 1});
    };
    const auto peer = [&](std::int64_t other) { return static_cast<std::uint32_t>(other % shape.stages); };
    const auto run = [&](Phase phase, TensorId in, TensorId out, TensorId kept, std::int64_t time) {
      const bool forward = phase == Phase::forward;
      const bool takes_in = forward ? part > 0 : part + 1 < parts;
      const bool hands_on = forward ? part + 1 < parts : part > 0;
      auto& ops = block.body(phase).ops;
      if (takes_in) {
        ops.push_back({.name = "receive",
                       .work = PipelineWork{.side = PipelineWork::Side::receive,
                                            .peer_role = peer(forward ? part - 1 + shape.stages : part + 1),
                                            .tag = forward ? 2 * (part - 1) : 2 * part + 1},
                       .writes = {in},
                       .stream = forward ? Stream::forward_receive : Stream::backward_receive});
      }
      workload::Op compute{
          .name = "compute",
          .work = workload::ElementwiseWork{.traffic = {{.tensor = out,
                                                         .bytes_per_element = static_cast<double>(time) /
                                                                              static_cast<double>(message)}}},
          .writes = {out}};
      if (takes_in) {
        compute.reads.push_back(in);
      }
      (forward ? compute.writes : compute.reads).push_back(kept);
      ops.push_back(compute);
      if (hands_on) {
        ops.push_back({.name = "send",
                       .work = PipelineWork{.side = PipelineWork::Side::send,
                                            .peer_role = peer(forward ? part + 1 : part - 1 + shape.stages),
                                            .tag = forward ? 2 * part : 2 * (part - 1) + 1},
                       .reads = {out},
                       .stream = forward ? Stream::forward_send : Stream::backward_send});
      }
    };
    const TensorId kept = tensor("kept", 1000 / shape.chunks);
    const TensorId x = tensor("x", message);
    const TensorId y = tensor("y", message);
    const TensorId d_y = tensor("d_y", message);
    const TensorId d_x = tensor("d_x", message);
    run(Phase::forward, x, y, kept, 100 / shape.chunks);
    run(Phase::backward, d_y, d_x, kept, 200 / shape.chunks);
    graph.templates.push_back(std::move(block));
  }
};

/// A machine on which a byte moves in a tenth of a picosecond: messages of one byte cost nothing.
spec::Cluster instant_machine(std::int64_t gpus) {
  spec::Cluster cluster = small_cluster(1, gpus);
  cluster.node.nvlink_bandwidth.value = Bandwidth(1e13);
  return cluster;
}

TEST(PipelineBubble, IsStagesLessOneOverMicroBatches) {
  for (const std::int64_t stages : {2, 4}) {
    for (const std::int64_t micro_batches : {4, 8, 12}) {
      const Stages equal({.stages = stages, .micro_batches = micro_batches}, 1);
      const results::Timeline timeline = play(equal.graph, instant_machine(stages));
      // Ideal: m·(F + B). Bubble: (p−1)·(F + B) (arXiv 2104.04473 §2.2.1). Messages of 1 ps leave whole nanoseconds.
      EXPECT_EQ(timeline.end.value() / 1000, (micro_batches + stages - 1) * 300) << stages << ", " << micro_batches;
    }
  }
}

TEST(PipelineBubble, IsDividedByTheVirtualStages) {
  for (const std::int64_t chunks : {2, 4}) {
    const Stages equal({.stages = 4, .chunks = chunks, .micro_batches = 8}, 1);
    const results::Timeline timeline = play(equal.graph, instant_machine(4));
    // (p−1)·(F + B)/v, arXiv 2104.04473 §2.2.2.
    EXPECT_EQ(timeline.end.value() / 1000, 8 * 300 + 3 * 300 / chunks) << chunks;
  }
}

TEST(PipelineMessage, CostsItsTimeOnEachBoundaryOfTheFirstMicroBatch) {
  // 1000 bytes at 10 ps are 10 ns, nothing beside them: one micro-batch passes three boundaries there and back.
  const Stages equal({.stages = 4, .micro_batches = 1}, 1000);
  const results::Timeline timeline = play(equal.graph, small_cluster(1, 4));
  EXPECT_EQ(timeline.end.value() / 1000, 4 * 300 + 2 * 3 * 10);
}

TEST(PipelineMemory, TheFirstStageHoldsAMicroBatchForEachStage) {
  const Stages equal({.stages = 4, .micro_batches = 8}, 1);
  const results::Timeline timeline = play(equal.graph, instant_machine(4));
  for (const results::RankTimeline& rank : timeline.ranks) {
    const auto stage = static_cast<std::int64_t>(rank.role);
    const workload::Schedule schedule = workload::unroll(equal.graph, rank.role);
    const memory::Usage gpu = memory::account(equal.graph, schedule, rank).gpu;
    EXPECT_EQ(gpu.peak / 1000, 4 - stage) << "what forward leaves, and a few messages of one byte";
  }
}

TEST(PipelineFolding, AgreesWithEveryRankOfItsOwn) {
  // Two replicas of two tensor ranks beside two stages, over two nodes, with the pipeline axis in every place.
  for (std::size_t place = 0; place < 3; ++place) {
    Stages equal({.stages = 2, .chunks = 2, .micro_batches = 4}, 1000);
    workload::Mesh& mesh = equal.graph.mesh;
    mesh.set_size(MeshAxis::tensor, 2);
    mesh.set_size(MeshAxis::data, 2);
    mesh.placement = {MeshAxis::tensor, MeshAxis::data, MeshAxis::pipeline, MeshAxis::ulysses, MeshAxis::ring};
    std::swap(mesh.placement.at(2), mesh.placement.at(place));
    spec::Cluster cluster = small_cluster(2, 4);
    cluster.node.network.base_latency.value = Duration(7'000);
    cluster.network.oversubscription = 2.0;
    const HostCosts host{.issue_time = Duration(1'000), .communication_sms = 20};
    const results::Timeline folded = play(equal.graph, cluster, host, FoldMode::folded);
    const results::Timeline unfolded = play(equal.graph, cluster, host, FoldMode::unfolded);
    ASSERT_EQ(folded.end.value(), unfolded.end.value());
    ASSERT_LT(folded.ranks.size(), unfolded.ranks.size()) << "nothing folds";
    for (const results::RankTimeline& rank : folded.ranks) {
      for (const RankId member : rank.members) {
        const results::RankTimeline& alone = unfolded.ranks[member.index()];
        ASSERT_EQ(rank.role, alone.role);
        for (std::size_t op = 0; op < rank.spans.size(); ++op) {
          ASSERT_EQ(rank.spans[op].begin.value(), alone.spans[op].begin.value()) << op;
          ASSERT_EQ(rank.spans[op].joined.value(), alone.spans[op].joined.value()) << op;
          ASSERT_EQ(rank.spans[op].end.value(), alone.spans[op].end.value()) << op;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ulysim::engine
