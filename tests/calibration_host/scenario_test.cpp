// Which question this answers: is a measured machine a `cluster:` like any other, and does the simulator then give the
// time of the layer that was measured? The machine is made up, so its layer's time is arithmetic.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "calibration/commands.h"
#include "calibration/fit_cluster.h"
#include "calibration/write_profile.h"
#include "sim/study/study.h"
#include "tests/calibration_host/paper_machine.h"
#include "tests/support/passes.h"

namespace ulysim::calibration {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTokens = 2048;

// One layer with the heads of the suite.
constexpr const char* kModel =
    R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 1,
        "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 1000,
        "max_position_embeddings": 8192, "tie_word_embeddings": false})";

class MeasuredCluster : public testing::TestWithParam<const char*> {
 protected:
  MeasuredCluster() : data_(fs::path(testing::TempDir()) / ("measured_cluster_" + std::to_string(getpid()))) {
    fs::create_directories(data_ / "scenarios");
    fs::copy(ULYSIM_SOURCE_DIR "/hw_models/catalog", data_ / "catalog", fs::copy_options::recursive);
    std::ofstream(data_ / "config.json") << kModel;
    const ClusterFit fit = fit_cluster(samples_of(GetParam()), "paper-core");
    std::ofstream(data_ / "catalog" / "gpus" / "paper-core.yaml") << write_gpu(fit.gpu);
    std::ofstream(data_ / "catalog" / "nodes" / "paper-core.yaml") << write_node(fit.node);
    std::ofstream(data_ / "catalog" / "kernels" / "paper-core.yaml") << write_profile(fit.profile);
    nodes_ = fit.nodes;
  }
  ~MeasuredCluster() override { fs::remove_all(data_); }

  [[nodiscard]] results::Figures simulated(const std::string& plan) const {
    const std::string text = fmt::format(
        "scenario: measured\nmodel: {}\ncluster: {{node: paper-core, nodes: {}}}\n"
        "training: {{sequence_length: {}, recompute: none}}\nplans: [{}]\n",
        (data_ / "config.json").string(), nodes_, kTokens, plan);
    const auto scenario = scenario::parse_scenario({.text = text, .file = "s.yaml", .folder = data_}, data_, {});
    tests::need_passes_of(scenario.plans);
    return study::run(scenario, {}).plans.at(0).figures.value();
  }

  fs::path data_;
  std::int64_t nodes_{};
};

double attention_seconds(const results::Figures& figures) {
  const auto found = std::find_if(figures.breakdown.begin(), figures.breakdown.end(),
                                  [](const auto& item) { return item.name == "attention"; });
  return seconds(found->time);
}

const results::CommunicationUse& use_of(const results::Figures& figures, const std::string& purpose) {
  return *std::find_if(figures.communication_by_purpose.begin(), figures.communication_by_purpose.end(),
                       [&](const auto& use) { return use.name == purpose; });
}

TEST_P(MeasuredCluster, GivesTheTimeOfTheUlyssesLayer) {
  const results::Figures figures = simulated("{ulysses: 2}");
  // Eight exchanges of a rank's 1024 tokens of 512 floats, half of which stay: 20 us + 1 MiB / 1 GB/s each.
  const double exchange = 20e-6 + 1048576.0 / 1e9;
  EXPECT_NEAR(seconds(use_of(figures, "ulysses").time), 8.0 * exchange, 0.01 * 8.0 * exchange);
  // What else the layer does is in the step's memory-bound kernels: a copy of 2 MiB beside every exchange.
  const double copies = 8.0 * 2.0 * 2097152.0 / 10e9;
  const double layer = PaperMachine()(LayerProbe{
      .scheme = Scheme::ulysses, .mask = Mask::causal, .tokens = kTokens, .heads = 8, .kv_heads = 8, .head_dim = 64});
  EXPECT_NEAR((attention_seconds(figures) + 8.0 * exchange + copies) / layer, 1.0, 0.10);
}

TEST_P(MeasuredCluster, GivesTheTimeOfTheRingsTransfers) {
  const results::Figures figures = simulated("{ring: 2, ring_layout: zigzag}");
  // K and V of 1024 tokens of 512 elements, once forward and once backward: 4 MiB of floats each at 0.8 GB/s. Their
  // gradients travel twice, in the simulator as float32 beside bf16 tensors, which is twice the bytes of an element;
  // the host's tensors are float32 already. Four transfers, 20 us each.
  const double bytes = 4194304.0 * (1.0 + 1.0 + 2.0 * 2.0);
  const double expected = 4.0 * 20e-6 + bytes / 0.8e9;
  EXPECT_NEAR(seconds(use_of(figures, "ring").time), expected, 0.01 * expected);
}

// The loop as a user closes it: the files of the fit beside the catalogue, the measured layers through the engine.
TEST_P(MeasuredCluster, ValidatesTheVeryLayersThatWereMeasured) {
  tests::need_pass("ulysses");
  tests::need_pass("ring");
  const auto samples = samples_of(GetParam());
  const FitOutput fitted = run_fit(data_ / "catalog", "paper-loop", samples);
  for (const WrittenFile& file : fitted.files) {
    const fs::path path = data_ / "catalog" / file.path;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << file.text;
  }
  const std::vector<fs::path> rows{data_ / "catalog" / "validate" / "paper-loop.yaml"};
  const results::ValidationResult validation = study::validate(rows, data_);
  ASSERT_EQ(validation.rows.size(), 12U);  // two schemes, two masks, three lengths
  for (const results::ValidationRow& row : validation.rows) {
    ASSERT_TRUE(row.predicted.has_value()) << row.id << ": " << row.note;
    EXPECT_NEAR(*row.predicted / row.measured, 1.0, 0.10) << row.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Fabrics, MeasuredCluster, testing::Values("shared-memory", "tcp-1gbit"),
                         [](const auto& of) { return std::string(of.param).substr(0, 3) == "tcp" ? "Tcp" : "Shared"; });

}  // namespace
}  // namespace ulysim::calibration
