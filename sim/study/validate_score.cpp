#include "sim/study/validate_score.h"

#include <algorithm>
#include <cmath>

namespace ulysim::study {
namespace {

using results::ValidationRow;
using results::ValidationSummary;

/// Of an ascending, non-empty list.
double median(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2.0;
}

/// Groups by a text of the row, in order of first appearance.
template <class Text>
void add_groups(const std::vector<ValidationRow>& rows, Text text, std::vector<ValidationSummary>& out) {
  std::vector<std::string> names;
  for (const ValidationRow& row : rows) {
    const std::string& name = text(row);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    std::vector<const ValidationRow*> group;
    for (const ValidationRow& row : rows) {
      if (text(row) == name) {
        group.push_back(&row);
      }
    }
    out.push_back(summarize(name, group));
  }
}

}  // namespace

bool is_outcome(const ValidationRow& row) {
  return row.metric == kOutOfMemory || row.metric == kFits;
}

ValidationSummary summarize(const std::string& name, const std::vector<const ValidationRow*>& rows) {
  ValidationSummary out{.metric = name};
  std::vector<double> errors;
  std::vector<double> ratios;
  for (const ValidationRow* row : rows) {
    if (!row->predicted) {
      ++out.skipped;
    } else if (is_outcome(*row)) {
      ++out.outcomes;
      out.wrong_outcomes += *row->predicted == row->measured ? 0 : 1;
    } else {
      ratios.push_back(*row->predicted / row->measured);
      errors.push_back(std::abs(ratios.back() - 1.0));
    }
  }
  out.rows = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) {
    return out;
  }
  std::sort(errors.begin(), errors.end());
  std::sort(ratios.begin(), ratios.end());
  out.median_error = median(errors);
  out.p90_error = errors[(errors.size() * 9 + 9) / 10 - 1];  // nearest rank: ⌈0.9 n⌉
  out.worst_error = errors.back();
  out.median_ratio = median(ratios);
  return out;
}

std::vector<ValidationSummary> scoreboard(const std::vector<ValidationRow>& rows) {
  std::vector<ValidationSummary> out;
  add_groups(
      rows, [](const ValidationRow& row) -> const std::string& { return row.metric; }, out);
  add_groups(
      rows, [](const ValidationRow& row) -> const std::string& { return row.source; }, out);
  std::vector<const ValidationRow*> all;
  all.reserve(rows.size());
  for (const ValidationRow& row : rows) {
    all.push_back(&row);
  }
  out.push_back(summarize("all", all));
  return out;
}

}  // namespace ulysim::study
