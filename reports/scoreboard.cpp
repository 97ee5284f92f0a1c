#include "reports/scoreboard.h"

#include <fmt/format.h>

#include <vector>

#include "reports/text.h"
#include "reports/verdict.h"

namespace ulysim::reports {
namespace {

/// Errors, and of the rows that only say whether a run fitted, how many are told wrong.
std::string scores(const std::vector<results::ValidationSummary>& summary, std::size_t width) {
  std::vector<std::vector<Cell>> rows;
  for (const results::ValidationSummary& s : summary) {
    const auto error = [&](double value) { return s.rows > 0 ? percent(value) : std::string(); };
    rows.push_back({{.text = s.metric},
                    {.text = fmt::to_string(s.rows)},
                    {.text = fmt::to_string(s.skipped)},
                    {.text = error(s.median_error)},
                    {.text = error(s.p90_error)},
                    {.text = error(s.worst_error)},
                    {.text = s.rows > 0 ? fmt::format("{:.2f}", s.median_ratio) : std::string()},
                    {.text = s.outcomes > 0 ? fmt::format("{} of {}", s.wrong_outcomes, s.outcomes) : std::string()}});
  }
  return grid({{.title = "metric"},
               {.title = "rows", .align = Align::right},
               {.title = "skipped", .align = Align::right},
               {.title = "median", .align = Align::right},
               {.title = "90%", .align = Align::right},
               {.title = "worst", .align = Align::right},
               {.title = "bias", .align = Align::right},
               {.title = "wrong", .align = Align::right}},
              rows, width);
}

std::string scored_rows(const std::vector<results::ValidationRow>& scored, std::size_t width) {
  std::vector<std::vector<Cell>> rows;
  for (const results::ValidationRow& row : scored) {
    const std::string predicted = row.predicted ? figure(*row.predicted) : "-";
    const std::string ratio =
        row.predicted && row.measured != 0.0 ? fmt::format("{:.2f}", *row.predicted / row.measured) : "";
    rows.push_back({{.text = printable(row.source)},
                    {.text = printable(row.id)},
                    {.text = row.metric},
                    {.text = figure(row.measured)},
                    {.text = predicted},
                    {.text = ratio}});
  }
  return grid({{.title = "source"},
               {.title = "id"},
               {.title = "metric"},
               {.title = "measured", .align = Align::right},
               {.title = "predicted", .align = Align::right},
               {.title = "ratio", .align = Align::right}},
              rows, width);
}

}  // namespace

std::string scoreboard(const results::ValidationResult& validation, std::size_t width) {
  const std::string out = scores(validation.summary, width) + '\n' + scored_rows(validation.rows, width);
  std::string notes;
  for (const results::ValidationRow& row : validation.rows) {
    if (!row.note.empty()) {
      const std::string& name = row.id.empty() ? row.source : row.id;
      notes += wrapped(printable(fmt::format("{}: {}", name, row.note)), width, 2);
    }
  }
  return notes.empty() ? out : out + '\n' + notes;
}

}  // namespace ulysim::reports
