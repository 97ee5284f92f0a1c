// Which question this answers: does the fit of a samples file find the machine that made it? The machine is made up
// from the cost model's own equations and lines of known slope, so every answer is known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "calibration/fit_cluster.h"
#include "calibration/write_profile.h"
#include "hw_models/spec/load.h"
#include "sim/base/diagnostics.h"
#include "tests/calibration_host/paper_machine.h"

namespace ulysim::calibration {
namespace {

TEST(FitCluster, FindsTheLinks) {
  const ClusterFit fit = fit_cluster(samples_of("shared-memory"), "paper-core");
  // float32 as elements of two bytes: half of 1 GB/s.
  EXPECT_NEAR(fit.node.nvlink_bandwidth.value.value(), 0.5e9, 1e3);
  EXPECT_NEAR(fit.node.nvlink.all_to_all_efficiency.value, 1.0, 1e-3);
  EXPECT_NEAR(fit.node.nvlink.p2p_efficiency.value, 0.8, 1e-3);
  EXPECT_NEAR(seconds(fit.node.nvlink.base_latency.value), 20e-6, 1e-8);
  EXPECT_NEAR(fit.gpu.memory_bandwidth.value.value(), 5e9, 1e3);
  EXPECT_EQ(fit.node.gpus, 2);
  EXPECT_EQ(fit.nodes, 1);
}

TEST(FitCluster, OverTcpEveryRankIsANode) {
  const ClusterFit fit = fit_cluster(samples_of("tcp-1gbit"), "paper-core");
  EXPECT_EQ(fit.node.gpus, 1);
  EXPECT_EQ(fit.nodes, 2);
}

TEST(FitCluster, PredictsLayersThatItHasNotSeen) {
  const auto samples = samples_of("shared-memory");
  const auto comparisons = compare_layers(samples, fit_cluster(samples, "paper-core"));
  ASSERT_THAT(comparisons, testing::SizeIs(12));
  for (const LayerComparison& c : comparisons) {
    // What remains is the shape of the attention fit: tiles and saturation, of which this machine has none.
    EXPECT_NEAR(c.predicted / c.measured, 1.0, 0.10) << static_cast<int>(c.layer.scheme) << " " << c.layer.tokens;
  }
}

TEST(FitCluster, WritesWhatTheCatalogueReads) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "fit_cluster_catalog";
  for (const char* kind : {"gpus", "nodes", "kernels"}) {
    fs::create_directories(folder / kind);
  }
  for (const char* fabric : {"shared-memory", "tcp-1gbit"}) {
    const ClusterFit fit = fit_cluster(samples_of(fabric), "paper-core");
    std::ofstream(folder / "gpus" / "paper-core.yaml") << write_gpu(fit.gpu);
    std::ofstream(folder / "nodes" / "paper-core.yaml") << write_node(fit.node);
    std::ofstream(folder / "kernels" / "paper-core.yaml") << write_profile(fit.profile);
    const spec::Catalog catalog(folder);
    const spec::Node node = catalog.load_node("paper-core");
    const spec::Gpu gpu = catalog.load_gpu("paper-core");
    EXPECT_EQ(node.nvlink_bandwidth.value.value(), fit.node.nvlink_bandwidth.value.value());
    EXPECT_EQ(node.network.base_latency.value, fit.node.network.base_latency.value);
    EXPECT_EQ(gpu.bf16.value.value(), fit.gpu.bf16.value.value());
    EXPECT_EQ(cost::find_kernel_profile(folder, gpu).gemm.efficiency.value, fit.profile.gemm.efficiency.value);
  }
  fs::remove_all(folder);
}

TEST(FitCluster, RefusesAMixOfFabricsAndMissingKinds) {
  auto samples = samples_of("shared-memory");
  samples.back().fabric = "tcp";
  EXPECT_THROW((void)fit_cluster(samples, "x"), InputError);
  EXPECT_THROW((void)fit_cluster({}, "x"), InputError);
  samples = samples_of("shared-memory");
  std::erase_if(samples, [](const Sample& s) { return std::holds_alternative<CollectiveProbe>(s.probe); });
  EXPECT_THROW((void)fit_cluster(samples, "x"), InputError);
}

}  // namespace
}  // namespace ulysim::calibration
