// The shipped measurements: every row has a prediction or a reason. No bound on the errors here: they are a
// scoreboard (`ulysim validate`), and a test that holds them invites a knob.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "sim/study/study.h"

namespace ulysim::study {
namespace {

namespace fs = std::filesystem;

/// `ulysim validate` of what is shipped, which takes a while: once for all that is asked of it.
class Published : public testing::Test {
 protected:
  Published() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::create_directory_symlink(ULYSIM_SOURCE_DIR "/hw_models/catalog", folder_ / "catalog");
    fs::create_directory_symlink(ULYSIM_SOURCE_DIR "/scenarios", folder_ / "scenarios");
    result_ = validate({}, folder_);
  }
  ~Published() override { fs::remove_all(folder_); }

  void has_predictions_or_reasons() const {
    EXPECT_GT(result_.rows.size(), 200U);
    for (const auto& row : result_.rows) {
      EXPECT_GT(row.measured, 0.0) << row.id;
      if (row.predicted) {
        EXPECT_TRUE(std::isfinite(*row.predicted)) << row.id;
      } else {
        EXPECT_NE(row.note, "") << row.id;
      }
    }
  }

  void predicts_all_of(const std::string& source) const {
    std::int64_t rows = 0;
    for (const auto& row : result_.rows) {
      if (row.source == source) {
        ++rows;
        EXPECT_TRUE(row.predicted) << row.id << ": " << row.note;
      }
    }
    EXPECT_GE(rows, 4) << source;
  }

  void counts_every_row() const {
    const auto of = [&](const std::string& name) {
      const auto found = std::find_if(result_.summary.begin(), result_.summary.end(),
                                      [&](const results::ValidationSummary& s) { return s.metric == name; });
      return found == result_.summary.end() ? std::int64_t{0} : found->rows + found->outcomes + found->skipped;
    };
    EXPECT_EQ(of("all"), static_cast<std::int64_t>(result_.rows.size()));
    EXPECT_GE(of("out_of_memory"), 3) << "Ulysses and ring at 4M tokens (UPipe), Qwen3-8B without offload (TRL)";
    EXPECT_GE(of("fits"), 10);
    EXPECT_EQ(result_.summary.back().metric, "all");
  }

 private:
  fs::path folder_ = fs::path(testing::TempDir()) / ("published_data_" + std::to_string(getpid()));  // side by side
  results::ValidationResult result_{};
};

TEST_F(Published, EveryRowHasAPredictionOrAReasonAndIsCounted) {
  has_predictions_or_reasons();
  predicts_all_of("UPipe");
  predicts_all_of("XTuner");
  counts_every_row();
}

}  // namespace
}  // namespace ulysim::study
