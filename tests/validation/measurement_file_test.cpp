// What stands wrong in a file of measurements is told with its place, all at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/study/study.h"
#include "sim/study/validate_file.h"

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
               "  - {id: E, metric: step_time_s, measured: 2}\n");
  EXPECT_THAT(all, HasSubstr("m.yaml:7:21: error: 'rows[0].metric': unknown value 'step_tme_s'; did you mean"));
  EXPECT_THAT(all, HasSubstr("m.yaml:8:36: error: 'rows[1].measured': must be above 0"));
  EXPECT_THAT(all, HasSubstr("outcom'; did you mean 'outcome'?"));
  EXPECT_THAT(all, HasSubstr("'rows[1].id': 'A' stands twice"));
  EXPECT_THAT(all, HasSubstr("'rows[2].measured': stands beside outcome oom"));
  EXPECT_THAT(all, HasSubstr("'rows[3].convention': counts FLOPs"));
  EXPECT_THAT(all, HasSubstr("'rows[4].plan': missing"));
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
  const auto path = write(std::string(kHead) +
                          "  - {id: A, metric: step_time_s, measured: 2, plan: {dtype: fp16, sequence_length: 4Ki}}\n");
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

TEST_F(MeasurementFile, AnEmptyFolderIsAMistake) {
  EXPECT_THROW((void)validate(std::vector{folder_ / "data"}, folder_ / "data"), InputError);
}

}  // namespace
}  // namespace ulysim::study
