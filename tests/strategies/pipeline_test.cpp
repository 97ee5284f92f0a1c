// Which question this answers: does each stage get its share of the chain, in the order of the published schedules, and
// send what physics says?

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "sim/strategies/stages.h"
#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Plan piped(std::int64_t stages, std::int64_t micro_batches) {
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(MeshAxis::pipeline, stages);
  plan.accumulation = micro_batches;
  return plan;
}

/// "F0.1 B1.0": forward of micro-batch 0 through chunk 1, …
std::string text(const std::vector<Cell>& table) {
  std::string out;
  for (const Cell& cell : table) {
    out += fmt::format("{}{}{}.{}", out.empty() ? "" : " ", cell.phase == Phase::forward ? 'F' : 'B', cell.micro_batch,
                       cell.chunk);
  }
  return out;
}

TEST(Stages, EndsCarryOneLayerLessWhereLayersAreLeftOver) {
  // 126 layers of Llama 3.1 405B over 16 stages: 7 at either end, 8 between (arXiv 2407.21783 §3.3.2).
  const std::vector<std::int64_t> llama = layers_of_parts(126, 16);
  EXPECT_EQ(llama.front(), 7);
  EXPECT_EQ(llama.back(), 7);
  EXPECT_EQ(std::count(llama.begin(), llama.end(), 8), 14);
  EXPECT_THAT(layers_of_parts(32, 4), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(layers_of_parts(7, 4), ElementsAre(2, 2, 2, 1)) << "the head's stage is the last to get one more";
  EXPECT_THAT(layers_of_parts(3, 2), ElementsAre(2, 1));
  EXPECT_THAT(layers_of_parts(5, 1), ElementsAre(5));
}

TEST(Schedule, OneForwardOneBackwardAfterTheWarmUp) {
  const PipelineShape shape{.stages = 4, .micro_batches = 5};
  EXPECT_EQ(text(one_forward_one_backward(shape, 0)), "F0.0 F1.0 F2.0 F3.0 B0.0 F4.0 B1.0 B2.0 B3.0 B4.0");
  EXPECT_EQ(text(one_forward_one_backward(shape, 2)), "F0.0 F1.0 B0.0 F2.0 B1.0 F3.0 B2.0 F4.0 B3.0 B4.0");
  EXPECT_EQ(text(one_forward_one_backward(shape, 3)), "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0 F4.0 B4.0");
  // Fewer micro-batches than stages: all of them warm up.
  EXPECT_EQ(text(one_forward_one_backward({.stages = 4, .micro_batches = 2}, 0)), "F0.0 F1.0 B0.0 B1.0");
}

TEST(Schedule, InterleavedWalksTheChunksInGroupsOfStages) {
  // Warm-up of stage 0: 2·(2−1) + (2−1)·2 = 4; of stage 1: 2 (Megatron-LM schedules.py).
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 4};
  EXPECT_EQ(text(one_forward_one_backward(shape, 0)),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(text(one_forward_one_backward(shape, 1)).substr(0, 24), "F0.0 F1.0 F0.1 B0.1 F1.1");
}

TEST(Schedule, TheFirstStageHoldsAsManyMicroBatchesAsThereAreStages) {
  for (const std::int64_t stages : {2, 4, 8}) {
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      std::int64_t held = 0;
      std::int64_t most = 0;
      for (const Cell& cell : one_forward_one_backward({.stages = stages, .micro_batches = 16}, stage)) {
        held += cell.phase == Phase::forward ? 1 : -1;
        most = std::max(most, held);
      }
      EXPECT_EQ(most, stages - stage);
      EXPECT_EQ(held, 0);
    }
  }
}

TEST(Pipeline, EveryBlockRunsInOneStageAndEveryParameterIsUpdatedOnce) {
  for (const std::int64_t chunks : {1, 2}) {
    lab::Bench bench = lab::bench("llama-3.1-8b", piped(2, 4), 5);
    bench.plan.virtual_stages = chunks;
    ASSERT_THAT(check(bench.whole_plan()), IsEmpty());
    const OpGraph graph = parallelize(bench.whole_plan(), bench.logical());
    ASSERT_EQ(graph.roles.size(), 2U);
    std::int64_t layers = 0;
    std::int64_t updated = 0;
    for (const Role& role : graph.roles) {
      for (const Instance& instance : role.program) {
        const BlockTemplate& block = graph.of(instance);
        layers += block.kind == BlockKind::layer && instance.phase == Phase::forward ? 1 : 0;
        if (block.kind == BlockKind::optimizer) {
          updated += global_elements(block.tensors.front());
        }
      }
    }
    EXPECT_EQ(layers, 5 * 4) << "five layers for each of four micro-batches";
    EXPECT_EQ(updated, count_parameters(bench.model).total);
    EXPECT_NEAR(model_flops(graph).value() / model_flops(bench.logical()).value(), 1, 1e-12);
    EXPECT_NEAR(executed_flops(graph).value() / executed_flops(bench.logical()).value(), 1, 1e-12);
  }
}

TEST(Pipeline, TheLastStageHoldsTheLogitsOfAStepWhereTheStackHandsThemOverAsOne) {
  // PyTorch's output_chunks: 4 micro-batches of 8192 × 128256 bf16 logits.
  for (const std::int64_t keeps : {0, 1}) {
    lab::Bench bench = lab::bench("llama-3.1-8b", piped(2, 4), 4);
    bench.framework.pipeline_keeps_outputs.value = keeps;
    double held = 0;
    for (const BlockTemplate& block : bench.after({"pipeline"}).templates) {
      for (const Tensor& tensor : block.tensors) {
        held += tensor.kind == MemoryKind::logits && tensor.persistent
                    ? static_cast<double>(local_bytes(tensor, bench.plan.mesh).value())
                    : 0;
      }
    }
    EXPECT_EQ(held, static_cast<double>(keeps) * 4 * 8192 * 128256 * 2);
  }
}

TEST(Pipeline, MessagesComeIntoBuffersThatStayWhereTheStackKeepsOneForEachMicroBatch) {
  // PyTorch: activations of one boundary and their gradients, 4 micro-batches of 8192 × 4096 bf16 each.
  for (const std::int64_t keeps : {0, 1}) {
    lab::Bench bench = lab::bench("llama-3.1-8b", piped(2, 4), 4);
    bench.framework.pipeline_receive_buffers.value = keeps;
    const OpGraph graph = parallelize(bench.whole_plan(), bench.logical());
    double held = 0;
    for (const BlockTemplate& block : graph.templates) {
      for (const Tensor& tensor : block.tensors) {
        held += block.kind == BlockKind::boundary && tensor.persistent
                    ? static_cast<double>(local_bytes(tensor, graph.mesh).value())
                    : 0;
      }
    }
    EXPECT_EQ(held, static_cast<double>(keeps) * 2 * 4 * 8192 * 4096 * 2);
    EXPECT_THAT(verify(graph), IsEmpty());
  }
}

TEST(Pipeline, EachStageUpdatesItsExpertsAndNoMore) {
  // mixtral-8x7b, four layers in two stages: what the optimizers of all stages hold is the model, once.
  lab::Bench bench = lab::bench("mixtral-8x7b", piped(2, 4), 4);
  const OpGraph graph = bench.after({"pipeline"});
  std::int64_t dense = 0;
  std::int64_t of_experts = 0;
  for (const Role& role : graph.roles) {
    for (const Tensor& tensor : graph.of(role.program.back()).tensors) {
      if (tensor.kind == MemoryKind::optimizer_states) {
        (tensor.find(Dim::experts) != nullptr ? of_experts : dense) += global_elements(tensor);
      }
    }
  }
  const TrainedElements trained = trained_elements(bench.logical());
  EXPECT_EQ(of_experts, 4 * 8 * 3 * 4096LL * 14336);
  EXPECT_EQ(of_experts, trained.of_experts);
  EXPECT_EQ(dense, trained.dense);
}

TEST(Pipeline, ABoundarySendsTheActivationsOnceEachWay) {
  // s·h·e = 8192 · 4096 · 2 bytes; with tensor and sequence parallelism each rank sends its s/T of it.
  for (const std::int64_t tensor : {1, 4}) {
    lab::Bench bench = lab::bench("llama-3.1-8b", piped(2, 2), 4);
    bench.plan.mesh.set_size(MeshAxis::tensor, tensor);
    const OpGraph graph = parallelize(bench.whole_plan(), bench.logical());
    std::int64_t sends = 0;
    for (const BlockTemplate& block : graph.templates) {
      for (const Body& body : block.bodies) {
        for (const Op& op : body.ops) {
          if (std::holds_alternative<PipelineWork>(op.work)) {
            EXPECT_EQ(payload_of(graph, block, body, op).value(), 8192 * 4096 * 2 / tensor);
            sends += std::get<PipelineWork>(op.work).side == PipelineWork::Side::send ? 1 : 0;
          }
        }
      }
    }
    EXPECT_EQ(sends, 2) << "one boundary, forward and backward";
  }
}

TEST(Pipeline, ATiedEmbeddingStandsAtBothEndsAndItsGradientsAreExchanged) {
  lab::Bench bench = lab::bench("gpt2", piped(2, 2), 2);
  bench.plan.mesh.set_size(MeshAxis::data, 2);
  bench.plan.zero = 1;
  ASSERT_THAT(check(bench.whole_plan()), IsEmpty());
  const OpGraph graph = parallelize(bench.whole_plan(), bench.logical());
  const std::int64_t table = bench.model.vocab * bench.model.hidden;
  std::int64_t updated = 0;
  int sends = 0;
  for (const Role& role : graph.roles) {
    for (const Instance& instance : role.program) {
      const BlockTemplate& block = graph.of(instance);
      if (block.kind == BlockKind::optimizer) {
        updated += global_elements(block.tensors.front());
      } else if (block.name.starts_with("shared_embedding")) {
        const Op& send = block.body(Phase::update).ops.front();
        EXPECT_EQ(payload_of(graph, block, block.body(Phase::update), send).value(),
                  table * static_cast<std::int64_t>(bench.framework.gradient_bytes.value));
        ++sends;
      }
    }
  }
  EXPECT_EQ(updated, count_parameters(bench.model).total + table) << "each stage updates its copy";
  EXPECT_EQ(sends, 2);
  EXPECT_NEAR(model_flops(graph).value() / model_flops(bench.logical()).value(), 1, 1e-12);
}

TEST(Pipeline, AScheduleThatCannotEndIsADeadlock) {
  const lab::Bench bench = lab::bench("llama-3.1-8b", piped(2, 2), 2);
  OpGraph graph = parallelize(bench.whole_plan(), bench.logical());
  ASSERT_THAT(verify(graph), IsEmpty());
  // Stage 0 asks for the first gradient before it has sent the first activation.
  auto& program = graph.roles[0].program;
  std::stable_sort(program.begin(), program.end(), [](const Instance& a, const Instance& b) {
    return (a.phase == Phase::backward) > (b.phase == Phase::backward);
  });
  const std::vector<std::string> findings = verify(graph);
  ASSERT_FALSE(findings.empty());
  EXPECT_THAT(findings.front(), HasSubstr("deadlock: role stage 0"));
}

TEST(Pipeline, RefusesWhatCannotRunAndSaysWhatCan) {
  const auto refusal = [](const lab::Bench& bench) {
    const auto reasons = check(bench.whole_plan());
    return reasons.empty() ? std::string() : reasons.front().reason + " | " + reasons.front().suggestion;
  };
  lab::Bench bench = lab::bench("llama-3.1-8b", piped(4, 6), 8);
  EXPECT_EQ(refusal(bench), "");
  bench.plan.virtual_stages = 2;
  EXPECT_THAT(refusal(bench), HasSubstr("groups of pipeline 4, not 6 | gradient_accumulation 8"));
  bench.plan.accumulation = 8;
  EXPECT_EQ(refusal(bench), "");
  bench.plan.virtual_stages = 3;
  EXPECT_THAT(refusal(bench), HasSubstr("8 layers are fewer than pipeline 4 × virtual_stages 3 | virtual_stages 2"));
  bench.plan.virtual_stages = 1;
  bench.plan.zero = 2;
  EXPECT_THAT(refusal(bench), HasSubstr("| zero: 1"));
}

TEST(Pipeline, TheHostWaitsForWhatItReceivesWhereTheStackSynchronises) {
  const auto waits = [](std::int64_t drains, std::int64_t virtual_stages) {
    Plan plan = piped(2, 4);
    plan.virtual_stages = virtual_stages;
    lab::Bench bench = lab::bench("llama-3.1-8b", plan, 4);
    bench.framework.pipeline_exchange_drains_host.value = drains;
    const OpGraph graph = parallelize(bench.whole_plan(), bench.logical());  // verify() finds no deadlock
    std::int64_t count = 0;
    for (const BlockTemplate& block : graph.templates) {
      for (const Body& body : block.bodies) {
        count += std::count_if(body.ops.begin(), body.ops.end(), [](const Op& op) {
          return op.host_waits && std::holds_alternative<PipelineWork>(op.work);
        });
      }
    }
    return count;
  };
  EXPECT_EQ(waits(0, 1), 0);
  EXPECT_EQ(waits(1, 1), 2) << "the activation at the second stage, its gradient at the first";
  EXPECT_EQ(waits(1, 2), 0) << "interleaved exchanges do not wait";
}

}  // namespace
}  // namespace ulysim::strategies
