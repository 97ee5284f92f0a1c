// Which question this answers: does the fit of a samples file find the machine that made it? The machine is made up
// from the cost model's own equations and lines of known slope, so every answer is known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "calibration/fit_cluster.h"
#include "calibration/suite/suite.h"
#include "calibration/write_profile.h"
#include "hw_models/spec/load.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

/// 100 GFLOP/s products, attention at 80 forward and 60 backward, 10 GB/s copies; links: 20 us and 1 GB/s for
/// all-to-all and rings, 0.8 GB/s for send/recv.
struct PaperMachine {
  double operator()(const GemmProbe& p) const { return 2e-6 + 2.0 * static_cast<double>(p.m * p.n * p.k) / 100e9; }
  double operator()(const AttentionProbe& p) const {
    const auto t = static_cast<double>(p.tokens);
    const double pairs = p.mask == Mask::full ? t * t : t * t - t * (t - 1.0) / 2.0;
    const auto width = static_cast<double>(p.heads * p.head_dim);
    return p.direction == kernel::Direction::forward ? 4.0 * pairs * width / 80e9 : 10.0 * pairs * width / 60e9;
  }
  double operator()(const CopyProbe& p) const { return 2.0 * static_cast<double>(p.bytes) / 10e9; }
  double operator()(const CollectiveProbe& p) const {
    const auto bytes = static_cast<double>(p.bytes);
    return p.collective == Collective::send_recv ? 20e-6 + bytes / 0.8e9 : 20e-6 + bytes / 2.0 / 1e9;
  }
  /// The same parts, one after the other: two ranks.
  double operator()(const LayerProbe& p) const {
    const auto width = static_cast<double>(p.heads * p.head_dim);
    const auto t = static_cast<double>(p.tokens);
    const double pairs = p.mask == Mask::full ? t * t : t * t - t * (t - 1.0) / 2.0;
    const double local_bytes = 4.0 * t / 2.0 * width;
    const double kernels = pairs * width / 2.0 * (4.0 / 80e9 + 10.0 / 60e9);
    if (p.scheme == Scheme::ulysses) {
      return kernels + 8.0 * (2.0 * local_bytes / 10e9 + 20e-6 + local_bytes / 2.0 / 1e9);
    }
    return kernels + 4.0 * (20e-6 + 2.0 * local_bytes / 0.8e9) + 2.0 * (2.0 * 2.0 * local_bytes / 10e9);
  }
};

std::vector<ProbeSample> samples_of(const std::string& fabric) {
  std::vector<ProbeSample> samples;
  for (const Probe& probe : standard_plan(SuiteSize::standard, 2).measure) {
    samples.push_back({.probe = probe,
                       .ranks = 2,
                       .fabric = fabric,
                       .seconds = std::visit(PaperMachine(), probe),
                       .repetitions = 5,
                       .source = "paper"});
  }
  return samples;
}

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
  std::erase_if(samples, [](const ProbeSample& s) { return std::holds_alternative<CollectiveProbe>(s.probe); });
  EXPECT_THROW((void)fit_cluster(samples, "x"), InputError);
}

}  // namespace
}  // namespace ulysim::calibration
