// What stands wrong in a file of measurements is told with its place, all at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/study/study.h"
#include "sim/study/validate_file.h"
#include "tests/support/passes.h"

namespace ulysim::study {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kHead =
    "source: {name: T, title: t, arxiv: 1}\n"
    "base:\n"
    "  model: llama-2-7b\n"
    "  cluster: {node: dgx-a100}\n"
    "  training: {zero: 3}\n"
    "rows:\n";

class MeasurementFile : public testing::Test {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(testing::TempDir()) / ("measurements_" + name + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "data");
    fs::create_directory_symlink(ULYSIM_SOURCE_DIR "/hw_models/catalog", folder_ / "data" / "catalog");
    fs::create_directory_symlink(ULYSIM_SOURCE_DIR "/scenarios", folder_ / "data" / "scenarios");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& text) {
    const auto path = folder_ / "m.yaml";
    std::ofstream(path) << text;
    return path;
  }

  /// Every message, one a line, the folder left off.
  std::string mistakes(const std::string& text) {
    Diagnostics diagnostics;
    (void)read_publication(write(text), folder_ / "data", diagnostics);
    std::string all;
    for (Diagnostic found : diagnostics.list()) {
      found.where.file = std::filesystem::path(found.where.file).filename().string();
      all += to_string(found) + '\n';
    }
    return all;
  }

  Publication read(const std::string& text) {
    Diagnostics diagnostics;
    Publication publication = read_publication(write(text), folder_ / "data", diagnostics);
    diagnostics.throw_if_any();
    return publication;
  }

  std::filesystem::path folder_;
};

TEST_F(MeasurementFile, ARowIsBaseThenSetThenPlan) {
  const Publication p = read(std::string(kHead) +
                             "  - id: A\n    metric: step_time_s\n    measured: 2\n"
                             "    set: {model: gpt-7b, cluster: {nodes: 2}}\n"
                             "    plan: {ulysses: 8, sequence_length: 64Ki, zero: 1}\n");
  ASSERT_EQ(p.rows.size(), 1U);
  const scenario::Scenario& s = *p.rows[0].scenario;
  EXPECT_EQ(s.model_name, "gpt-7b") << "set replaces base";
  EXPECT_EQ(s.cluster.node.name, "dgx-a100") << "set is laid over base key by key";
  EXPECT_EQ(s.cluster.gpus, 16);
  EXPECT_EQ(s.plans[0].plan.zero, 1) << "the plan overrides training";
  EXPECT_EQ(s.plans[0].plan.sequence_length, 65536);
  EXPECT_EQ(s.plans[0].plan.mesh.size(workload::MeshAxis::data), 2);
}

TEST_F(MeasurementFile, MistakesOfARowStandWhereTheyAre) {
  const std::string all =
      mistakes(std::string(kHead) +
               "  - {id: A, metric: step_tme_s, measured: 2, plan: {sequence_length: 4Ki}}\n"
               "  - {id: A, metric: mfu, measured: -1, plan: {sequence_length: 4Ki}, outcom: oom}\n"
               "  - {id: C, outcome: oom, measured: 2, plan: {sequence_length: 4Ki}}\n"
               "  - {id: D, metric: step_time_s, measured: 2, convention: full-x4, plan: {sequence_length: 4Ki}}\n"
               "  - {id: E, metric: step_time_s, measured: 2}\n"
               "  - {id: F, outcome: fits, measured: 2, plan: {sequence_length: 4Ki}}\n"
               "  - {id: G, metric: mfu, fits_at: 1Ki, fails_at: 2Ki, plan: {sequence_length: 4Ki}}\n"
               "  - {id: H, metric: max_sequence_length, fits_at: 1Ki, plan: {sequence_length: 4Ki}}\n"
               "  - {id: I, metric: max_sequence_length, fits_at: 2Ki, fails_at: 2Ki, plan: {sequence_length: 4Ki}}\n"
               "  - {id: J, metric: max_sequence_length, measured: 1, fits_at: 1, fails_at: 2, plan: {}}\n");
  EXPECT_THAT(all, HasSubstr("m.yaml:7:21: error: 'rows[0].metric': unknown value 'step_tme_s'; did you mean"));
  EXPECT_THAT(all, HasSubstr("m.yaml:8:36: error: 'rows[1].measured': must be above 0"));
  EXPECT_THAT(all, HasSubstr("outcom'; did you mean 'outcome'?"));
  EXPECT_THAT(all, HasSubstr("'rows[1].id': 'A' stands twice"));
  EXPECT_THAT(all, HasSubstr("'rows[2].measured': stands beside an outcome"));
  EXPECT_THAT(all, HasSubstr("'rows[3].convention': counts FLOPs"));
  EXPECT_THAT(all, HasSubstr("'rows[4].plan': missing"));
  EXPECT_THAT(all, HasSubstr("'rows[5].measured': stands beside an outcome"));
  EXPECT_THAT(all, HasSubstr("'rows[6].fits_at': brackets a length"));
  EXPECT_THAT(all, HasSubstr("'rows[7].fits_at': needs the other end"));
  EXPECT_THAT(all, HasSubstr("'rows[8].fails_at': must be above fits_at"));
  EXPECT_THAT(all, HasSubstr("'rows[9].measured': stands beside fits_at and fails_at"));
}

TEST_F(MeasurementFile, MistakesOfTheScenarioStandInTheRow) {
  const std::string all = mistakes(std::string(kHead) +
                                   "  - id: A\n    metric: step_time_s\n    measured: 2\n"
                                   "    set: {cluster: {node: dgx-a10}}\n"
                                   "    plan: {ulyses: 8,\n"
                                   "           sequence_length: 64GiB}\n");
  EXPECT_THAT(all, HasSubstr("m.yaml:10:27: error:")) << "the wrong node's name";
  EXPECT_THAT(all, HasSubstr("m.yaml:11:12: error: unknown key 'rows[0].plan.ulyses'")) << "the unknown key";
  EXPECT_THAT(all, HasSubstr("did you mean 'ulysses'?"));
  EXPECT_THAT(all, HasSubstr("m.yaml:12:29: error: 'rows[0].plan.sequence_length'")) << "the value of the wrong kind";
}

TEST_F(MeasurementFile, AMistakeInBaseIsToldOnce) {
  std::string text = kHead;
  text.replace(text.find("zero: 3"), 7, "zero: 4");
  const std::string row = ", metric: step_time_s, measured: 1, plan: {sequence_length: 4Ki}}\n";
  const std::string all = mistakes(text + "  - {id: A" + row + "  - {id: B" + row);
  EXPECT_EQ(all, "m.yaml:5:20: error: 'training.zero': 4 is outside 0 to 3\n");
}

TEST_F(MeasurementFile, BaseHoldsNoPlansAndASourceItsOrigin) {
  const std::string all = mistakes("source: {name: T, title: t}\nbase: {plans: [{}]}\nrows: []\nrow: 1\n");
  EXPECT_THAT(all, HasSubstr("'source': needs 'arxiv' or 'repository'"));
  EXPECT_THAT(all, HasSubstr("m.yaml:2:8: error: unknown key 'base.plans'"));
  EXPECT_THAT(all, HasSubstr("m.yaml:4:1: error: unknown key 'row'"));
}

TEST_F(MeasurementFile, WhatIsNotYetSupportedIsARefusedRowAndNoMistake) {
  const auto path =
      write(std::string(kHead) +
            "  - {id: A, metric: step_time_s, measured: 2, plan: {optimizer: {states: fp16}, sequence_length: 4Ki}}\n");
  const auto result = validate(std::vector{path}, folder_ / "data");
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_FALSE(result.rows[0].predicted);
  EXPECT_THAT(result.rows[0].note, HasSubstr("not yet supported"));
}

TEST_F(MeasurementFile, APlanThatCannotRunSaysWhy) {
  // 32 heads do not divide by 24 (3 nodes of 8).
  const auto path = write(std::string(kHead) +
                          "  - id: A\n    metric: step_time_s\n    measured: 2\n    set: {cluster: {nodes: 3}}\n"
                          "    plan: {ulysses: 24, sequence_length: 24Ki}\n    note: from a log\n");
  const auto result = validate(std::vector{path}, folder_ / "data");
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_FALSE(result.rows[0].predicted);
  EXPECT_THAT(result.rows[0].note, HasSubstr("cannot run: "));
  EXPECT_THAT(result.rows[0].note, HasSubstr("from a log"));
}

TEST_F(MeasurementFile, FoldersAreReadInOrderOfNameAndOnlyTheirYaml) {
  const std::string row = "  - {id: A, metric: step_time_s, measured: 2, plan: {expert: 2, sequence_length: 4Ki}}\n";
  for (const char* name : {"b", "a"}) {
    std::string text = kHead + row;
    text.replace(text.find("name: T"), 7, std::string("name: ") + name);
    std::ofstream(folder_ / (std::string(name) + ".yaml")) << text;
  }
  std::ofstream(folder_ / "README.md") << "no: [yaml";
  const auto result = validate(std::vector{folder_}, folder_ / "data");
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].source + result.rows[1].source, "ab");
}

TEST_F(MeasurementFile, MemoryIsComparedAsItWasMeasured) {
  std::string rows;
  for (const char* metric :
       {"peak_gpu_allocated_gib", "peak_gpu_reserved_gib", "peak_gpu_memory_gib", "peak_host_memory_gib_per_node"}) {
    rows += std::string("  - {id: ") + metric + ", metric: " + metric + ", measured: 1, plan: {sequence_length: 8Ki, " +
            "checkpoint_offload: cpu}}\n";
  }
  const auto result = validate(std::vector{write(kHead + rows)}, folder_ / "data");
  ASSERT_EQ(result.rows.size(), 4U);
  ASSERT_TRUE(result.rows[0].predicted) << result.rows[0].note;
  const auto predicted = [&](std::size_t row) { return result.rows[row].predicted.value_or(0.0); };
  // The allocator's tensors, with fragmentation and workspace, with CUDA context and NCCL.
  EXPECT_LT(predicted(0), predicted(1));
  EXPECT_LT(predicted(1), predicted(2));
  // Checkpoints of 31 of 32 layers (DeepSpeed keeps the newest), 8 GPUs: 8192 · 4096 · 2 B = 64 MiB each.
  EXPECT_DOUBLE_EQ(predicted(3), 8 * 31 / 16.0);
}

TEST_F(MeasurementFile, APredictionInsideTheBracketIsRight) {
  tests::need_pass("ring");
  // A ring of 8 over 80 GiB: whatever the longest is, it lies above 1 Ki, below 64 Mi, and not between 1 and 2 Ki.
  const auto row = [](const char* id, const char* ends) {
    return std::string("  - {id: ") + id + ", metric: max_sequence_length, " + ends +
           ", plan: {ring: 8, sequence_length: 64Ki}}\n";
  };
  const auto result = validate(
      std::vector{write(kHead + row("wide", "fits_at: 1Ki, fails_at: 64Mi") +
                        row("low", "fits_at: 1Ki, fails_at: 2Ki") + row("high", "fits_at: 32Mi, fails_at: 64Mi"))},
      folder_ / "data");
  ASSERT_EQ(result.rows.size(), 3U);
  ASSERT_TRUE(result.rows[0].predicted);
  EXPECT_EQ(result.rows[0].measured, *result.rows[0].predicted);
  EXPECT_EQ(result.rows[1].measured, 2048.0);
  EXPECT_EQ(result.rows[2].measured, 33'554'432.0);
  EXPECT_THAT(result.rows[0].note, HasSubstr("limit: gpu-memory; measured: 1024 train, 67108864 do not"));
}

TEST_F(MeasurementFile, ARunThatIsKnownToFitIsWrongWhenItIsPredictedNotTo) {
  const auto path = write(std::string(kHead) +
                          "  - {id: A, outcome: fits, plan: {ulysses: 8, sequence_length: 64Ki}}\n"
                          "  - {id: B, outcome: fits, plan: {ulysses: 8, sequence_length: 64Mi}}\n"
                          "  - {id: C, outcome: oom, plan: {ulysses: 8, sequence_length: 64Mi}}\n"
                          "  - {id: D, outcome: oom, plan: {ulysses: 8, sequence_length: 64Ki}}\n");
  const auto result = validate(std::vector{path}, folder_ / "data");
  ASSERT_EQ(result.rows.size(), 4U);
  const std::vector<double> expected{1.0, 0.0, 1.0, 0.0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(result.rows[i].measured, 1.0);
    EXPECT_EQ(result.rows[i].predicted.value_or(-1.0), expected[i]) << result.rows[i].id;
  }
  EXPECT_THAT(result.rows[1].note, HasSubstr("does not fit"));
  const auto& source = result.summary[result.summary.size() - 2];
  EXPECT_EQ(source.metric, "T");
  EXPECT_EQ(source.outcomes, 4);
  EXPECT_EQ(source.wrong_outcomes, 2);
  EXPECT_EQ(source.rows, 0);
}

TEST_F(MeasurementFile, AnEmptyFolderIsAMistake) {
  EXPECT_THROW((void)validate(std::vector{folder_ / "data"}, folder_ / "data"), InputError);
}

}  // namespace
}  // namespace ulysim::study
