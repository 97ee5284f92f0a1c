// Which question this answers: does what people read fit their terminal, however narrow it is and whatever names stand
// in it?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/text.h"
#include "reports/writer.h"
#include "tests/reports/example.h"
#include "tests/reports/sweep_example.h"

namespace ulysim::reports {
namespace {

constexpr std::size_t kNarrowest = 40;
constexpr std::size_t kWidest = 200;

const std::string kLongName(90, 'n');

/// The longest line, in columns.
std::string widest_line(const std::string& text) {
  std::string widest;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    widest = display_width(line) > display_width(widest) ? line : widest;
    at = end + 1;
  }
  return widest;
}

void expect_fits(const Report& report, const char* what) {
  for (std::size_t width = kNarrowest; width <= kWidest; ++width) {
    for (const bool unicode : {false, true}) {
      const std::string text = writer("table").write(report, {.width = width, .unicode = unicode}).value();
      const std::string widest = widest_line(text);
      ASSERT_LE(display_width(widest), width) << what << " at " << width << ":\n" << widest;
    }
  }
}

results::StudyResult with_long_names(results::StudyResult study) {
  study.scenario.name = kLongName;
  study.plans[0].name = kLongName + " second word";
  study.warnings = {kLongName};
  return study;
}

TEST(Width, OfAStudy) {
  const results::StudyResult study = example();
  expect_fits(&study, "compare");
  const results::StudyResult named = with_long_names(example());
  expect_fits(&named, "compare with long names");
}

TEST(Width, OfASinglePlan) {
  results::StudyResult study = example();
  study.plans.resize(1);
  study.plans[0].figures->total_days = 11.5;
  study.plans[0].figures->peak_tensors = {{kLongName, "logits", Bytes(kGiB), 12345}};
  study.plans[0].figures->bottleneck = kLongName;
  expect_fits(&study, "run");
}

TEST(Width, OfTheLongestSequences) {
  const results::StudyResult study = longest_example();
  expect_fits(&study, "maxseq");
  const results::StudyResult named = with_long_names(longest_example());
  expect_fits(&named, "maxseq with long names");
}

TEST(Width, OfAScoreboard) {
  const results::ValidationResult validation{
      .rows = {{.source = kLongName,
                .id = kLongName,
                .metric = "peak_host_memory_gib_per_node",
                .measured = 1234567.0,
                .predicted = 2345678.0,
                .note = kLongName},
               {.source = "a", .id = "b", .metric = "mfu", .measured = 0.5}},
      .summary = {{.metric = "peak_host_memory_gib_per_node", .rows = 100, .skipped = 20, .median_ratio = 1.0},
                  {.metric = kLongName, .rows = 1}}};
  expect_fits(&validation, "validate");
}

TEST(Width, OfAModel) {
  const results::ModelInfo model{.name = kLongName,
                                 .model_type = kLongName,
                                 .parameters = 8'030'261'248,
                                 .attention = "multi-head latent attention of many words and " + kLongName,
                                 .mlp = "128 experts, 8 a token, 1 shared",
                                 .ulysses_degrees = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}};
  expect_fits(&model, "model");
}

TEST(Width, OfAFit) {
  const results::FitResult fit{.name = kLongName,
                               .parameters = {{kLongName, 0.123456789, "TFLOP/s", kLongName, "published", 0.1}},
                               .groups = {{kLongName, 203, 0.054, 0.129, 0.31, 0.052, std::nullopt}},
                               .residuals = {{kLongName, "4096x4096x4096", 650.0, 640.5, std::nullopt, "TFLOP/s"}}};
  expect_fits(&fit, "calibrate fit");
}

TEST(Width, OfASweep) {
  results::SweepResult sweep = sweep_example();
  expect_fits(&sweep, "sweep");
  sweep.name = kLongName;
  sweep.plans[0] = kLongName;
  sweep.axes[0].values[1] = kLongName;
  sweep.axes[1].key = kLongName;
  expect_fits(&sweep, "sweep with long names");
}

TEST(Grid, MovesColumnsThatFindNoRoomBelowAndLosesNone) {
  const std::vector<Column> columns{{"plan"}, {"first column"}, {"second column"}, {"third"}};
  const std::vector<std::vector<Cell>> rows{{{"ulysses=8"}, {"1"}, {"2"}, {"3"}}};
  EXPECT_EQ(grid(columns, rows, 80),
            "plan       first column  second column  third\n"
            "─────────  ────────────  ─────────────  ─────\n"
            "ulysses=8  1             2              3\n");
  EXPECT_EQ(grid(columns, rows, 36),
            "plan       first column\n"
            "─────────  ────────────\n"
            "ulysses=8  1\n"
            "\n"
            "plan       second column  third\n"
            "─────────  ─────────────  ─────\n"
            "ulysses=8  2              3\n");
}

TEST(Wrapped, BreaksAWordThatIsLongerThanALine) {
  EXPECT_EQ(wrapped("see abcdefghijkl now", 8, 2), "see\n  abcdef\n  ghijkl\n  now\n");
}

}  // namespace
}  // namespace ulysim::reports
