// Does everything in the shipped catalogue load, with provenance, and does it agree with what is publicly known?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "hw_models/spec/load.h"

namespace ulysim::spec {
namespace {

using testing::Contains;
using testing::IsSupersetOf;

Catalog shipped() {
  return Catalog(std::filesystem::path(ULYSIM_SOURCE_DIR) / "hw_models/catalog");
}

TEST(Shipped, HoldsTheFixedNames) {
  EXPECT_THAT(shipped().gpu_names(),
              IsSupersetOf({"a100-80-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "gb200", "l40s", "h20-sxm"}));
  EXPECT_THAT(shipped().node_names(),
              IsSupersetOf({"aws-p5", "dgx-a100", "dgx-h100", "hgx-h200", "dgx-b200", "gb200-nvl72"}));
  EXPECT_THAT(shipped().framework_names(),
              IsSupersetOf({"deepspeed-hf", "arctic-training", "trl-fsdp2", "torchtitan", "megatron-core", "nemo"}));
}

TEST(Shipped, EveryGpuLoadsAndComputesMoreThanItMoves) {
  for (const std::string& name : shipped().gpu_names()) {
    const Gpu gpu = shipped().load_gpu(name);
    EXPECT_EQ(gpu.name, name);
    EXPECT_FALSE(gpu.summary.empty()) << name;
    EXPECT_FALSE(gpu.memory.source.empty()) << name;
    // Every datacentre GPU since 2016 needs tens to hundreds of FLOPs per byte to be compute-bound; the H20, whose
    // FLOPs are cut by export rules, 37.
    const double intensity = gpu.bf16.value.value() / gpu.memory_bandwidth.value.value();
    EXPECT_GT(intensity, 30.0) << name;
    EXPECT_LT(intensity, 1000.0) << name;
    // Reading all of the memory once takes 20 (L40S: 55) ms: capacity follows bandwidth.
    const double sweep = static_cast<double>(gpu.memory.value.value()) / gpu.memory_bandwidth.value.value();
    EXPECT_GT(sweep, 0.015) << name;
    EXPECT_LT(sweep, 0.07) << name;
    // bf16 FLOPs of one SM and second: 1.4 T (A100) to 17 T (GB200).
    const double per_sm = gpu.bf16.value.value() / static_cast<double>(gpu.sms.value);
    EXPECT_GT(per_sm, 1e12) << name;
    EXPECT_LT(per_sm, 20e12) << name;
    if (gpu.fp8) {
      EXPECT_NEAR(gpu.fp8->value.value() / gpu.bf16.value.value(), 2.0, 0.03) << name;
    }
    if (gpu.fp4) {
      ASSERT_TRUE(gpu.fp8.has_value()) << name;
      EXPECT_GE(gpu.fp4->value.value(), 1.9 * gpu.fp8->value.value()) << name;
    }
    if (gpu.power_watts) {
      EXPECT_GT(gpu.power_watts->value, 200.0) << name;
    }
  }
}

TEST(Shipped, EveryGpuHasAKernelProfile) {
  for (const std::string& name : shipped().gpu_names()) {
    const Gpu gpu = shipped().load_gpu(name);
    EXPECT_TRUE(std::filesystem::exists(shipped().folder() / "kernels" / (gpu.kernel_profile + ".yaml"))) << name;
    if (gpu.kernel_profile != name) {
      EXPECT_THAT(gpu.summary, testing::HasSubstr("assumed")) << name << " borrows " << gpu.kernel_profile;
    }
  }
}

TEST(Shipped, GenerationsAreOrdered) {
  const std::vector<std::string> generations{"v100-32-sxm", "a100-80-sxm", "h100-sxm", "b200-sxm", "gb200"};
  for (std::size_t i = 1; i < generations.size(); ++i) {
    const Gpu older = shipped().load_gpu(generations[i - 1]);
    const Gpu newer = shipped().load_gpu(generations[i]);
    EXPECT_GT(newer.bf16.value, older.bf16.value) << newer.name;
    EXPECT_GE(newer.memory_bandwidth.value, older.memory_bandwidth.value) << newer.name;
    EXPECT_GE(newer.sms.value, older.sms.value) << newer.name;
  }
  // What export rules and PCIe cards lose against the SXM part they are made of.
  EXPECT_EQ(shipped().load_gpu("h800-sxm").bf16.value, shipped().load_gpu("h100-sxm").bf16.value);
  EXPECT_LT(shipped().load_node("hgx-h800").nvlink_bandwidth.value,
            shipped().load_node("hgx-h100").nvlink_bandwidth.value);
  EXPECT_LT(shipped().load_gpu("h20-sxm").bf16.value, shipped().load_gpu("a100-80-sxm").bf16.value);
  EXPECT_GT(shipped().load_gpu("h20-sxm").memory_bandwidth.value,
            shipped().load_gpu("h100-sxm").memory_bandwidth.value);
  EXPECT_LT(shipped().load_gpu("h100-pcie").bf16.value, shipped().load_gpu("h100-sxm").bf16.value);
  EXPECT_EQ(shipped().load_gpu("a100-40-sxm").bf16.value, shipped().load_gpu("a100-80-sxm").bf16.value);
}

TEST(Shipped, EveryNodeLoadsAndItsLinksAreOrdered) {
  for (const std::string& name : shipped().node_names()) {
    const Node node = shipped().load_node(name);
    EXPECT_FALSE(node.summary.empty()) << name;
    const Gpu gpu = shipped().load_gpu(node.gpu_name);
    if (node.fabric == NodeFabric::pcie) {
      EXPECT_EQ(node.nvlink_bandwidth.value.value(), 0.0) << name;
    } else {
      EXPECT_LT(node.nvlink_bandwidth.value.value(), gpu.memory_bandwidth.value.value()) << name;
      EXPECT_LT(node.nic_bandwidth.value.value(), node.nvlink_bandwidth.value.value()) << name;
      EXPECT_GT(node.nvlink_bandwidth.value.value(), node.pcie_bandwidth.value.value()) << name;
    }
    // Traffic of a GPU's NICs enters over its PCIe link, which must not be the narrower one.
    const double nics_per_gpu = static_cast<double>(node.nics.value) / static_cast<double>(node.gpus);
    EXPECT_LE(node.nic_bandwidth.value.value() * nics_per_gpu, node.pcie_bandwidth.value.value()) << name;
    EXPECT_LT(node.nvlink.base_latency.value.value(), node.network.base_latency.value.value()) << name;
    // The host can take what all uplinks of one direction bring, or nearly.
    const double uplinks = node.pcie_uplink_bandwidth.value.value() * static_cast<double>(node.gpus) /
                           static_cast<double>(node.gpus_per_pcie_uplink.value);
    EXPECT_GT(node.host_memory_bandwidth.value.value(), 0.5 * uplinks) << name;
    EXPECT_GT(node.host_memory.value.value(), gpu.memory.value.value()) << name;
  }
}

TEST(Shipped, DrivesReadFasterThanTheyWriteAndHoldMoreThanMemory) {
  std::int64_t with_drives = 0;
  for (const std::string& name : shipped().node_names()) {
    const Node node = shipped().load_node(name);
    if (node.nvme) {
      ++with_drives;
      EXPECT_GT(node.nvme->read.value, node.nvme->write.value) << name;
      EXPECT_LT(node.nvme->read.value, node.host_memory_bandwidth.value) << name;
      EXPECT_GT(node.nvme->capacity.value, node.host_memory.value) << name;
      EXPECT_FALSE(node.nvme->read.source.empty()) << name;
    }
  }
  EXPECT_GE(with_drives, 8);
  EXPECT_FALSE(shipped().load_node("gh200").nvme);
}

TEST(Shipped, GraceBlackwellRackIsOneNvlinkDomainOfEighteenHosts) {
  const Node rack = shipped().load_node("gb200-nvl72");
  EXPECT_EQ(rack.gpus, 72);
  EXPECT_EQ(rack.gpus / rack.hosts.value, 4) << "a tray";
  EXPECT_EQ(rack.fabric, NodeFabric::nvswitch);
}

TEST(Shipped, AllToAllOfEightPcieCardsAgreesWithTheModelItStandsOn) {
  // Each GPU keeps 1/8; two share an uplink, over which each sends 6/8: 1.5 data over 25 GB/s, so a bus bandwidth of
  // 7/8 / (1.5 / 25) = 14.6 GB/s before NCCL's efficiency, and SimuMax measures 8.3 with it.
  const Node node = shipped().load_node("pcie-a100-8");
  const double uplink = node.pcie_uplink_bandwidth.value.value();
  EXPECT_NEAR(7.0 / 8.0 / (1.5 / uplink) * node.nvlink.all_to_all_efficiency.value, 8.26e9, 0.05e9);
}

TEST(Shipped, AllToAllOfEightGpusAgreesWithMeasurement) {
  // xxrjun/nccl-tests-cluster, one node of 8 H100, alltoall of 4 GiB: 10.92 ms. Ours: 7/8 of it at 0.762 x 450 GB/s.
  const Node node = shipped().load_node("dgx-h100");
  const double bytes = 4294967296.0 * 7 / 8;
  const double rate = node.nvlink_bandwidth.value.value() * node.nvlink.all_to_all_efficiency.value;
  EXPECT_NEAR(seconds(node.nvlink.base_latency.value) + bytes / rate, 10.92e-3, 0.05 * 10.92e-3);
}

TEST(Shipped, EveryFrameworkLoadsWithASourceForAll) {
  for (const std::string& name : shipped().framework_names()) {
    const Framework framework = shipped().load_framework(name);
    EXPECT_EQ(framework.name, name);
    EXPECT_FALSE(framework.summary.empty()) << name;
  }
}

TEST(Shipped, DeepSpeedStatesSumToItsKnownTotals) {
  const Framework framework = shipped().load_framework("deepspeed-hf");
  // 2 + 2 + 4 + 8 bytes a parameter (ZeRO, arXiv 1910.02054, §3.1: 16Ψ).
  EXPECT_EQ(framework.weight_bytes.value + framework.gradient_bytes.value + framework.master_bytes.value +
                framework.moments_bytes.value,
            16.0);
  // Offloaded: fp32 master and moments 12, fp32 and bf16 gradients 6.
  EXPECT_EQ(framework.host_bytes_per_parameter.value, 18.0);
  // Llama-8B forward, h 4096, f 14336, q 4096, kv 1024, two norms, two adds: 84h + 20(q+kv) + 10f = 589,824 B a token.
  EXPECT_EQ(4096 * (2 * framework.norm_forward.value + 2 * framework.residual_forward.value) +
                5120 * framework.rope_forward.value + 14336 * framework.activation_forward.value,
            589'824.0);
  EXPECT_EQ(framework.checkpoint_offload_memory.value, HostMemory::pinned);
  EXPECT_EQ(shipped().load_framework("arctic-training").checkpoint_offload_copy.value, CopyMode::blocking);
}

TEST(Shipped, StatesOfEveryStackSumToWhatItsPapersSay) {
  const auto sum = [](const Framework& f) {
    return f.weight_bytes.value + f.gradient_bytes.value + f.master_bytes.value + f.moments_bytes.value;
  };
  // FSDP2: fp32 weight, gradient and two moments; bf16 exists only while a layer is gathered.
  for (const char* name : {"trl-fsdp2", "torchtitan"}) {
    const Framework f = shipped().load_framework(name);
    EXPECT_EQ(sum(f), 16.0) << name;
    EXPECT_EQ(f.weight_bytes.value, 4.0) << name;
    EXPECT_EQ(f.gathered_weight_bytes.value, 2.0) << name;
    EXPECT_EQ(f.gather_unit.value, GatherUnit::layer) << name;
  }
  // Megatron's distributed optimizer: bf16 weight 2, fp32 main gradient 4, master 4, moments 8 = 18 (6 + 12/d); recipes
  // of Megatron-Bridge keep and reduce the main gradient in bf16.
  EXPECT_EQ(sum(shipped().load_framework("megatron-core")), 18.0);
  EXPECT_EQ(sum(shipped().load_framework("nemo")), 16.0);
  EXPECT_FALSE(shipped().load_framework("deepspeed-hf").loss_tile_tokens.has_value());
  EXPECT_EQ(shipped().load_framework("deepspeed-hf").ring_gradient_wire_bytes.source, "default");
  EXPECT_EQ(shipped().load_framework("trl-fsdp2").loss_tile_tokens->value, 256);
  EXPECT_EQ(shipped().load_framework("torchtitan").loss_tiles->value, 8);
  EXPECT_EQ(shipped().load_framework("arctic-training").tiled_logits_bytes->value, 2);
  EXPECT_FALSE(shipped().load_framework("deepspeed-hf").tiled_logits_bytes.has_value());
  EXPECT_EQ(shipped().load_framework("trl-fsdp2").gradient_wire_bytes.value, 2.0) << "accelerate reduces in bf16";
  EXPECT_EQ(shipped().load_framework("torchtitan").gradient_wire_bytes.value, 4.0) << "torchtitan only in fp32";
}

TEST(Shipped, AVersionOfAStackIsItsDifferences) {
  const Framework now = shipped().load_framework("torchtitan");
  const Framework then = shipped().load_framework("torchtitan-2024");
  EXPECT_EQ(then.name, "torchtitan-2024");
  EXPECT_NE(then.summary, now.summary);
  EXPECT_EQ(then.norm_forward.source, now.norm_forward.source);
  // fp32 log-softmax, its gradient, that of the logits; compiled, bf16 logits and gradient.
  EXPECT_EQ(then.logits_peak_bytes.value, 12.0);
  EXPECT_EQ(now.logits_peak_bytes.value, 4.0);
  EXPECT_EQ(then.root_unit_stays_gathered.value, 1);
  EXPECT_EQ(now.root_unit_stays_gathered.value, 0);
  // One pass of foreach AdamW after another, the list of roots beside them; fused, all in one.
  EXPECT_EQ(then.optimizer_traffic.value, 92);
  EXPECT_EQ(then.optimizer_transient_bytes.value, 4);
  const Framework between = shipped().load_framework("torchtitan-2025-03");
  EXPECT_EQ(between.logits_peak_bytes.value, then.logits_peak_bytes.value);
  EXPECT_EQ(between.optimizer_traffic.value, now.optimizer_traffic.value);
}

// Complex numbers are beyond Inductor: what rotates is eager in a compiled block too.
TEST(Shipped, TorchtitanRotatesInEagerKernels) {
  const Framework compiled = shipped().load_framework("torchtitan");
  const Framework eager = shipped().load_framework("untied-ulysses");
  EXPECT_EQ(compiled.rope_forward.value, eager.rope_forward.value);
  EXPECT_EQ(compiled.rope_backward.value, eager.rope_backward.value);
  EXPECT_LT(compiled.norm_forward.value, eager.norm_forward.value);
}

TEST(Shipped, APartUnderAnotherPowerLimitHoldsLessOfItsProfile) {
  const Gpu limited = shipped().load_gpu("h100-hbm2e");
  const Gpu whole = shipped().load_gpu("h100-sxm");
  EXPECT_LT(limited.sustained_efficiency.value, 1.0);
  EXPECT_EQ(whole.sustained_efficiency.value, 1.0);
  ASSERT_TRUE(limited.bandwidth_efficiency.has_value());
  EXPECT_FALSE(limited.bandwidth_efficiency->source.empty());
  EXPECT_FALSE(whole.bandwidth_efficiency.has_value());
}

TEST(Shipped, CompiledAndFusedStacksMoveLessThanEagerOnes) {
  const Framework eager = shipped().load_framework("deepspeed-hf");
  for (const char* name : {"torchtitan", "megatron-core", "nemo"}) {
    const Framework fused = shipped().load_framework(name);
    EXPECT_LT(fused.norm_forward.value, eager.norm_forward.value) << name;
    EXPECT_LT(fused.activation_backward.value, eager.activation_backward.value) << name;
    EXPECT_LT(fused.norm_kernels.value, eager.norm_kernels.value) << name;
  }
}

/// A catalogue of its own that goes when the test ends.
class Dropped : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("ulysim_catalog_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "gpus");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_{};
};

TEST_F(Dropped, AYamlFileIsAGpuWithoutARebuild) {
  const Catalog catalog(folder_);
  EXPECT_TRUE(catalog.gpu_names().empty());
  std::ofstream(folder_ / "gpus/x1.yaml") << "summary: a GPU of the future\n"
                                             "memory: {value: 512GiB, source: leaflet, kind: datasheet}\n"
                                             "memory_bandwidth: {value: 20TB/s, source: leaflet, kind: datasheet}\n"
                                             "sms: {value: 200, source: a guess, kind: assumed, spread: 0.2}\n"
                                             "bf16: {value: 5PFLOP/s, source: leaflet, kind: datasheet}\n";
  std::ofstream(folder_ / "gpus/notes.txt") << "no GPU";
  EXPECT_THAT(catalog.gpu_names(), testing::ElementsAre("x1"));
  const Gpu gpu = catalog.load_gpu("x1");
  EXPECT_EQ(gpu.memory.value.value(), std::int64_t{512} << 30);
  EXPECT_EQ(gpu.bf16.value.value(), 5e15);
  EXPECT_EQ(gpu.sms.kind, SourceKind::assumed);
  EXPECT_EQ(gpu.sms.spread, 0.2);
  EXPECT_FALSE(gpu.fp8.has_value());
}

}  // namespace
}  // namespace ulysim::spec
