#include "sim/study/validate_score.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ulysim::study {
namespace {

using results::ValidationRow;
using results::ValidationSummary;

ValidationRow row(const std::string& source, const std::string& metric, double measured,
                  std::optional<double> predicted) {
  return {.source = source, .id = "x", .metric = metric, .measured = measured, .predicted = predicted};
}

TEST(Score, MedianNinetiethWorstAndBiasByPencil) {
  // Ratios 0.5, 0.9, 1.0, 1.3: errors 0, 0.1, 0.3, 0.5 in order. Median error (0.1 + 0.3)/2, rank ⌈3.6⌉ = 4 of 4,
  // median ratio (0.9 + 1.0)/2.
  const std::vector<ValidationRow> rows{row("a", "m", 2, 1), row("a", "m", 10, 9), row("a", "m", 4, 4),
                                        row("a", "m", 10, 13), row("a", "m", 5, std::nullopt)};
  const auto board = scoreboard(rows);
  ASSERT_EQ(board.size(), 3U) << "one metric, one source, all";
  const ValidationSummary& m = board[0];
  EXPECT_EQ(m.metric, "m");
  EXPECT_EQ(m.rows, 4);
  EXPECT_EQ(m.skipped, 1) << "no prediction, no error";
  EXPECT_NEAR(m.median_error, 0.2, 1e-12);
  EXPECT_NEAR(m.p90_error, 0.5, 1e-12);
  EXPECT_NEAR(m.worst_error, 0.5, 1e-12);
  EXPECT_NEAR(m.median_ratio, 0.95, 1e-12);
}

TEST(Score, TheNinetiethOfTenIsTheNinth) {
  std::vector<ValidationRow> rows;
  for (int i = 1; i <= 10; ++i) {
    rows.push_back(row("a", "m", 100, 100 + i));
  }
  EXPECT_NEAR(scoreboard(rows)[0].p90_error, 0.09, 1e-12);
}

TEST(Score, OutcomesAreCountedAndHaveNoPartInTheErrors) {
  const std::vector<ValidationRow> rows{row("a", "step_time_s", 10, 12), row("a", kOutOfMemory, 1, 0),
                                        row("b", kOutOfMemory, 1, 1), row("b", kFits, 1, 0),
                                        row("b", kFits, 1, std::nullopt)};
  std::vector<std::string> lines;
  for (const ValidationSummary& s : scoreboard(rows)) {
    lines.push_back(s.metric + ": " + std::to_string(s.rows) + " figures, " + std::to_string(s.wrong_outcomes) +
                    " of " + std::to_string(s.outcomes) + " wrong, " + std::to_string(s.skipped) + " skipped");
  }
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "step_time_s: 1 figures, 0 of 0 wrong, 0 skipped",
                       "out_of_memory: 0 figures, 1 of 2 wrong, 0 skipped",
                       "fits: 0 figures, 1 of 1 wrong, 1 skipped",
                       "a: 1 figures, 1 of 1 wrong, 0 skipped",
                       "b: 0 figures, 1 of 2 wrong, 1 skipped",
                       "all: 1 figures, 2 of 3 wrong, 1 skipped",
                   }));
  EXPECT_NEAR(scoreboard(rows).back().worst_error, 0.2, 1e-12) << "the outcomes are no errors of 100 %";
}

}  // namespace
}  // namespace ulysim::study
