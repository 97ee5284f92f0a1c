// Which question this answers: does a scenario become the plans that its author meant?

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scenario/small.h"

namespace ulysim::scenario {
namespace {

using strategies::Plan;
using testing::ElementsAre;
using workload::MeshAxis;

std::vector<std::string> names(const Scenario& scenario) {
  std::vector<std::string> all;
  for (const PlanEntry& entry : scenario.plans) {
    all.push_back(entry.plan.name);
  }
  return all;
}

TEST(Load, DefaultsAreThoseOfTheContract) {
  const Scenario s = parsed(study("{sequence_length: 1Mi}", "[{}]"));
  const Plan& plan = s.plans.front().plan;
  EXPECT_EQ(plan.sequence_length, 1 << 20);
  EXPECT_EQ(plan.micro_batch, 1);
  EXPECT_EQ(plan.accumulation, 1);
  EXPECT_EQ(plan.attention, kernel::AttentionKernel::flash_attention_2);
  EXPECT_EQ(plan.mask, workload::Mask::Kind::causal);
  EXPECT_EQ(plan.recompute, strategies::Recompute::full);
  EXPECT_EQ(plan.zero, 3);
  EXPECT_EQ(plan.optimizer_offload, strategies::Offload::none);
  EXPECT_EQ(plan.checkpoint_offload, strategies::Offload::none);
  EXPECT_FALSE(plan.tiled_mlp);
  EXPECT_FALSE(plan.tiled_loss);
  EXPECT_EQ(plan.ring_layout, workload::Layout::zigzag);
  EXPECT_EQ(plan.ring_exchange, strategies::RingExchange::p2p);
  EXPECT_EQ(s.plans.front().framework.name, "deepspeed-hf");
  EXPECT_EQ(plan.mesh.size(MeshAxis::data), 8) << "{} is pure data parallel over the eight GPUs";
}

TEST(Load, TheContractsOwnExampleLoads) {
  const Scenario s = load_scenario(data_folder() / "scenarios/runs/llama3-8b-1m-8xh100.yaml", data_folder(), {});
  EXPECT_EQ(s.name, "llama3-8b-1m-8xh100");
  EXPECT_EQ(s.cluster.gpus, 8);
  EXPECT_THAT(names(s), ElementsAre("ulysses=8", "ring=8", "tensor=8", "usp"));
  EXPECT_EQ(s.plans[3].plan.mesh.size(MeshAxis::ulysses), 4);
  EXPECT_EQ(s.plans[0].plan.attention, kernel::AttentionKernel::flash_attention_3);
  EXPECT_EQ(s.plans[0].plan.optimizer_offload, strategies::Offload::cpu);
}

TEST(Load, OneDegreeMayTakeAllGpusThatTheOthersLeave) {
  const Scenario s = parsed(study("{sequence_length: 1Mi}",
                                  "[{ulysses: all}, {tensor: 2, ring: all}, {ulysses: all, data: 2}, "
                                  "{data: all, tensor: 4}]"));
  EXPECT_THAT(names(s), ElementsAre("ulysses=8", "tensor=2,ring=4", "ulysses=4,data=2", "tensor=4,data=2"));
  EXPECT_EQ(complaints(study("{sequence_length: 1Mi}", "[{ulysses: all, ring: all}, {ulysses: all, tensor: 3}]")),
            "s.yaml:4:30: error: 'plans[0].ring': 'ulysses' has all the GPUs that are left already\n"
            "s.yaml:4:36: error: 'plans[1]': tensor 3 does not divide 8 GPUs\n");
  EXPECT_THAT(complaints(study("{sequence_length: 1Mi}", "[{ulysses: most}]")),
              testing::HasSubstr("cannot read 'most'"));
}

TEST(Load, AThousandPlansAreTakenAndNotOneMore) {
  const auto with_plans = [](int count) {
    std::string plans;
    for (int i = 0; i < count; ++i) {
      plans += fmt::format("{}{{ulysses: 8, name: p{}}}", i == 0 ? "[" : ", ", i);
    }
    return study("{sequence_length: 4Ki}", plans + "]");
  };
  EXPECT_EQ(parsed(with_plans(1000)).plans.size(), 1000);
  EXPECT_THAT(complaints(with_plans(1001)), testing::HasSubstr("1001 plans; at most 1000"));
}

TEST(Load, AdaptersAndPrecisionOfAPlanReplaceThoseOfTraining) {
  const Scenario s =
      parsed(study("{sequence_length: 4Ki, trainable: {lora: {rank: 8, targets: [q_proj, v_proj]}}, "
                   "base_precision: nf4}",
                   "[{}, {trainable: {lora: {}}, gemm_precision: fp8}, {trainable: all, "
                   "base_precision: bf16}]"));
  const auto& lora = s.plans[0].plan.adapters;
  ASSERT_TRUE(lora);
  EXPECT_EQ(lora->rank, 8);
  EXPECT_THAT(lora->targets, ElementsAre("q_proj", "v_proj"));
  EXPECT_EQ(lora->base, workload::BaseWeights::nf4);
  EXPECT_EQ(s.plans[0].plan.gemm_precision, kernel::Precision::bf16);
  EXPECT_EQ(s.plans[1].plan.adapters->rank, 16);
  EXPECT_TRUE(s.plans[1].plan.adapters->targets.empty()) << "all linear maps";
  EXPECT_EQ(s.plans[1].plan.gemm_precision, kernel::Precision::fp8);
  EXPECT_FALSE(s.plans[2].plan.adapters);
  EXPECT_THAT(names(s),
              ElementsAre("data=8", "data=8,gemm_precision=fp8,trainable.lora=rank 16", "data=8,trainable=all"));
}

TEST(Load, LengthsAreDrawnBySeedAndMean) {
  const auto ends = [](const char* more) {
    return *parsed(study(fmt::format("{{sequence_length: {{distribution: {{kind: lognormal, pack_to: 64Ki, {}}}}}}}",
                                     more),
                         "[{}]"))
                .plans.front()
                .plan.documents;
  };
  EXPECT_EQ(ends("mean: 1Ki, seed: 7"), ends("mean: 1Ki, seed: 7"));
  EXPECT_NE(ends("mean: 1Ki, seed: 7"), ends("mean: 1Ki, seed: 8"));
  // 64 documents of a mean of 1,024 tokens fill 64 Ki; of 4,096, a quarter as many.
  EXPECT_GT(ends("mean: 1Ki").size(), 2 * ends("mean: 4Ki").size());
}

TEST(Load, APlansOwnLengthReplacesTheDocumentsOfTheStudy) {
  const Scenario s = parsed(study("{sequence_length: {packed: [1Ki, 3Ki]}}", "[{}, {sequence_length: 8Ki}]"));
  EXPECT_NE(s.plans[0].plan.documents, nullptr);
  EXPECT_EQ(s.plans[1].plan.documents, nullptr);
  EXPECT_EQ(s.plans[1].plan.sequence_length, 8192);
}

TEST(Load, ExpertsTakeNoGpusOfTheirOwn) {
  const Scenario s = parsed(
      "model: deepseek-v3\ncluster: {node: dgx-h100, nodes: 4}\ntraining: {sequence_length: 4Ki, expert_imbalance: "
      "1.2}\n"
      "plans: [{ulysses: 8, expert: 16}, {ulysses: 8, expert: 1}]\n");
  EXPECT_THAT(names(s), ElementsAre("expert=16,ulysses=8,data=4", "ulysses=8,data=4"));
  const Plan& plan = s.plans.front().plan;
  EXPECT_EQ(plan.mesh.world(), 32);
  EXPECT_EQ(plan.mesh.size(MeshAxis::expert), 16);
  EXPECT_EQ(plan.mesh.size(MeshAxis::expert_data), 2);
  EXPECT_EQ(plan.expert_imbalance, 1.2);
}

TEST(Load, EveryShippedScenarioLoads) {
  int loaded = 0;
  for (const auto& file : std::filesystem::directory_iterator(data_folder() / "scenarios/runs")) {
    EXPECT_NO_THROW((void)load_scenario(file.path(), data_folder(), {})) << file.path();
    ++loaded;
  }
  EXPECT_GE(loaded, 8);
}

TEST(Sequences, PackedLengthsAddUp) {
  const Scenario s = parsed(study("{sequence_length: {packed: [4Ki, 1Ki, 3Ki]}}", "[{ulysses: 8}]"));
  const Plan& plan = s.plans[0].plan;
  EXPECT_EQ(plan.sequence_length, 8192);
  EXPECT_THAT(*plan.documents, ElementsAre(4096, 5120, 8192));
  EXPECT_THAT(describe(s), testing::HasSubstr("  sequence_length.packed: 3 documents of 1024 to 4096 tokens\n"));
}

TEST(Sequences, APlainLengthOfAPlanReplacesThePackedOneOfTraining) {
  const Scenario s =
      parsed(study("{sequence_length: {packed: [4Ki, 4Ki]}}", "[{ulysses: 8, sequence_length: 64Ki}, {ulysses: 8}]"));
  EXPECT_EQ(s.plans[0].plan.documents, nullptr);
  EXPECT_THAT(names(s), ElementsAre("ulysses=8,sequence_length=65536", "ulysses=8"));
}

TEST(Sequences, DrawnDocumentsFillTheSequenceAndFollowTheSeed) {
  const auto drawn = [](const std::string& inner) {
    const Scenario s = parsed(study("{sequence_length: {distribution: {" + inner + ", pack_to: 64Mi}}}", "[{}]"));
    return *s.plans[0].plan.documents;
  };
  const auto ends = drawn("kind: lognormal, mean: 8Ki, sigma: 1, seed: 1");
  EXPECT_EQ(ends.back(), 64 << 20);
  EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));
  // 8192 documents are expected; their mean has a standard error of √(e−1)/√8192 = 1.4%.
  EXPECT_NEAR(static_cast<double>(ends.size()), 8192, 4 * 0.0145 * 8192);
  EXPECT_EQ(ends, drawn("kind: lognormal, mean: 8Ki, sigma: 1, seed: 1"));
  EXPECT_NE(ends, drawn("kind: lognormal, mean: 8Ki, sigma: 1, seed: 2"));
  EXPECT_THAT(drawn("kind: constant, mean: 24Mi"), ElementsAre(24 << 20, 48 << 20, 64 << 20)) << "the last one is cut";
  std::int64_t begin = 0;
  const auto uniform = drawn("kind: uniform, min: 10Ki, max: 20Ki");
  for (std::size_t i = 0; i + 1 < uniform.size(); ++i) {
    EXPECT_GE(uniform[i] - begin, 10 << 10);
    EXPECT_LE(uniform[i] - begin, 20 << 10);
    begin = uniform[i];
  }
}

// splitmix64, twelve uniforms a normal and exp, written down once more in another language.
TEST(Sequences, TheFirstDocumentsOfASeedAreTheseOnEveryMachine) {
  const Scenario s =
      parsed(study("{sequence_length: {distribution: {kind: lognormal, mean: 1Ki, seed: 42, pack_to: 4Ki}}}", "[{}]"));
  EXPECT_THAT(*s.plans[0].plan.documents, ElementsAre(103, 327, 533, 829, 3503, 4096));
}

TEST(Masks, AWindowOrAPatternReplacesTheMask) {
  const Scenario s = parsed(study(
      "{sequence_length: 1Mi, attention: {mask: {sliding_window: 4Ki}}}",
      "[{ulysses: 8}, {ulysses: 8, attention: {mask: full}}, {ulysses: 8, attention: {mask: {block_sparse: {block: "
      "128, "
      "local: 4, stride: 16, causal: false}}}}, {ulysses: 8, attention: {mask: {block_sparse: {density: 0.25}}}}]"));
  EXPECT_EQ(s.plans[0].plan.sliding_window, 4096);
  EXPECT_EQ(s.plans[1].plan.sliding_window, std::nullopt);
  EXPECT_EQ(s.plans[1].plan.mask, workload::Mask::Kind::full);
  EXPECT_EQ(s.plans[2].plan.block_sparse, (workload::BlockSparse{.block = 128, .local = 4, .stride = 16}));
  EXPECT_THAT(names(s), ElementsAre("ulysses=8", "ulysses=8,attention.mask=full",
                                    "ulysses=8,attention.mask={block_sparse: {block: 128, local: 4, stride: 16, "
                                    "causal: false}}",
                                    "ulysses=8,attention.mask={block_sparse: {block: 64, density: 0.25, seed: 0}}"));
}

TEST(Masks, NoGlobalBlockIsAPatternToo) {
  const Scenario s = parsed(
      study("{sequence_length: 1Mi, attention: {mask: {block_sparse: {global: 0, local: 4}}}}", "[{ulysses: 8}]"));
  EXPECT_EQ(s.plans[0].plan.block_sparse->global, 0);
}

TEST(PlanNames, DegreesInPassOrderThenWhatIsOverridden) {
  const Scenario s =
      parsed(study("{sequence_length: 1Mi}",
                   "[{ring: 2, ulysses: 4}, {ulysses: 4}, {ulysses: 8, zero: 2}, {ring: 8, ring_layout: striped}, "
                   "{ring: 8, optimizer: {offload: cpu}, tiled_mlp: true}, {ulysses: 8, sequence_length: 2Mi}]"));
  EXPECT_THAT(names(s),
              ElementsAre("ulysses=4,ring=2", "ulysses=4,data=2", "ulysses=8,zero=2", "ring=8,ring_layout=striped",
                          "ring=8,optimizer.offload=cpu,tiled_mlp=true", "ulysses=8,sequence_length=2097152"));
}

TEST(PlanNames, OneGpuHasANameToo) {
  const Scenario s = parsed(
      "model: llama-3.1-8b\ncluster: {node: dgx-h100, gpus: 1}\ntraining: {sequence_length: 4Ki}\nplans: [{}]\n");
  EXPECT_THAT(names(s), ElementsAre("data=1"));
}

TEST(Batch, AccumulationFollowsFromTheGlobalBatchOfEachPlan) {
  // 16 sequences: 8 replicas of 1 take 2 micro steps, 2 replicas take 8, 1 replica takes 16.
  const Scenario s = parsed(study("{sequence_length: 4Ki, global_batch: 16}", "[{}, {ulysses: 4}, {ring: 8}]"));
  EXPECT_EQ(s.plans[0].plan.accumulation, 2);
  EXPECT_EQ(s.plans[1].plan.accumulation, 8);
  EXPECT_EQ(s.plans[2].plan.accumulation, 16);
  for (const PlanEntry& entry : s.plans) {
    EXPECT_EQ(entry.plan.global_batch(), 16);
  }
}

TEST(Batch, APlansAccumulationReplacesTheGlobalBatchOfTraining) {
  const Scenario s =
      parsed(study("{sequence_length: 4Ki, global_batch: 16}", "[{ulysses: 8, gradient_accumulation: 3}]"));
  EXPECT_EQ(s.plans[0].plan.accumulation, 3);
}

TEST(Overrides, LieOverTheFileAndMakeWhatIsMissing) {
  const Scenario s = parsed(study("{sequence_length: 1Mi}", "[{ulysses: 8}]"),
                            {.overrides = {{.text = "training.sequence_length=2Mi"},
                                           {.text = "training.optimizer.offload=cpu"},
                                           {.text = "plans.0.ulysses=4"},
                                           {.text = "plans.1={ring: 8}"},
                                           {.text = "cluster.network={oversubscription: 2}"}}});
  EXPECT_EQ(s.plans[0].plan.sequence_length, 2 << 20);
  EXPECT_EQ(s.plans[0].plan.optimizer_offload, strategies::Offload::cpu);
  EXPECT_THAT(names(s), ElementsAre("ulysses=4,data=2", "ring=8"));
  EXPECT_EQ(s.cluster.network.oversubscription, 2.0);
}

TEST(Cluster, GpusUsesOnlySoManyOfEachNode) {
  const Scenario s = parsed(
      "model: llama-3.1-8b\ncluster: {node: dgx-h100, nodes: 2, gpus: 4, network: {topology: fat-tree, "
      "nic_bandwidth: 200Gb/s, latency: 12us}, price_per_gpu_hour: 2.5}\n"
      "training: {sequence_length: 4Ki, total_tokens: 10G}\nplans: [{tensor: 4}]\n");
  EXPECT_EQ(s.cluster.gpus, 8);
  EXPECT_EQ(s.cluster.gpus_per_node(), 4);
  EXPECT_EQ(s.cluster.network.nic_bandwidth, Bandwidth(25e9)) << "200 Gb/s are 25 GB/s";
  EXPECT_EQ(s.cluster.network.latency, Duration(12'000'000));
  EXPECT_EQ(s.price_per_gpu_hour, 2.5);
  EXPECT_EQ(s.plans[0].total_tokens, 10'000'000'000);
}

TEST(Placement, NamedAxesComeInnermostAndTheOthersFollow) {
  const Scenario s = parsed(study("{sequence_length: 1Mi}", "[{ulysses: 4, ring: 2, placement: [ring]}]"));
  EXPECT_THAT(s.plans[0].plan.mesh.placement,
              ElementsAre(MeshAxis::ring, MeshAxis::tensor, MeshAxis::ulysses, MeshAxis::data, MeshAxis::pipeline));
}

TEST(PipelineKeys, VirtualStagesInterleaveAndAPlainPipelineDoesNot) {
  const Scenario s =
      parsed(study("{sequence_length: 8Ki, zero: 1, gradient_accumulation: 8}",
                   "[{pipeline: 4}, {pipeline: 2, virtual_stages: 2, schedule: interleaved}, {data: 8}]"));
  EXPECT_EQ(s.plans[0].plan.mesh.size(MeshAxis::pipeline), 4);
  EXPECT_EQ(s.plans[0].plan.mesh.size(MeshAxis::data), 2) << "what is left of eight GPUs";
  EXPECT_EQ(s.plans[0].plan.name, "data=2,pipeline=4");
  EXPECT_EQ(s.plans[1].plan.virtual_stages, 2);
  EXPECT_EQ(s.plans[1].plan.name, "data=4,pipeline=2,virtual_stages=2");
  const auto schedule_of = [&](std::size_t plan) {
    for (const auto& [key, value] : options_of(s.plans[plan])) {
      if (key == "schedule") {
        return value;
      }
    }
    return std::string("none");
  };
  EXPECT_EQ(schedule_of(0), "1f1b");
  EXPECT_EQ(schedule_of(1), "interleaved");
  EXPECT_EQ(schedule_of(2), "none") << "one stage has no schedule to tell";
}

TEST(PipelineKeys, AScheduleThatVirtualStagesContradictIsAMistake) {
  const std::string all = complaints(study("{sequence_length: 8Ki, zero: 1}",
                                           "[{pipeline: 2, schedule: interleaved}, "
                                           "{pipeline: 2, virtual_stages: 2, schedule: 1f1b, name: b}]"));
  EXPECT_THAT(all, testing::HasSubstr("'plans[0].schedule': interleaved needs virtual_stages of 2 or more"));
  EXPECT_THAT(all, testing::HasSubstr("'plans[1].schedule': 1f1b stands beside virtual_stages 2"));
}

TEST(Describe, EveryOptionOfAPlanIsTold) {
  const Scenario s = parsed(study("{sequence_length: 1Mi}", "[{ulysses: 8}]"));
  const std::string text = describe(s);
  EXPECT_THAT(text, testing::HasSubstr("plan ulysses=8:\n"));
  EXPECT_THAT(text, testing::HasSubstr("  attention.implementation: flash-attention-2\n"));
  EXPECT_THAT(text, testing::HasSubstr("  zero: 3\n"));
}

}  // namespace
}  // namespace ulysim::scenario
