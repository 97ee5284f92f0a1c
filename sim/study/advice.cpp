#include "sim/study/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/format.h"
#include "sim/study/fixes.h"
#include "sim/study/length_search.h"
#include "sim/study/simulate.h"

namespace ulysim::study {

namespace {

struct Outcome {
  std::string text{};
  results::Figures figures{};
};

std::optional<Outcome> try_plan(const scenario::Scenario& scenario, const Machine& machine,
                                const scenario::PlanEntry& entry, std::string text) {
  const results::PlanResult result = simulate(scenario, machine, entry, {});
  if (!result.figures) {
    return std::nullopt;
  }
  return Outcome{.text = std::move(text), .figures = *result.figures};
}

std::string gives(const Outcome& outcome) {
  const results::Figures& f = outcome.figures;
  return fmt::format("{} → {:.1f} of {:.1f} GiB, {} a step", outcome.text, gibibytes(f.peak_gpu_memory),
                     gibibytes(f.gpu_memory_capacity), human(f.step_time));
}

/// The longest length at which the plan trains as it is.
std::optional<Outcome> shorter(const scenario::Scenario& scenario, const Machine& machine,
                               const scenario::PlanEntry& entry) {
  LengthSearch search(scenario, machine, entry);
  const std::size_t present = std::max<std::size_t>(1, search.lengths().index_below(entry.plan.sequence_length));
  const std::size_t index = search.longest(present);
  if (index == 0) {
    return std::nullopt;
  }
  return try_plan(scenario, machine, search.entry_at(index),
                  fmt::format("{} tokens", human_count(search.lengths().tokens(index))));
}

}  // namespace

std::vector<std::string> advise(const scenario::Scenario& scenario, const Machine& machine,
                                const scenario::PlanEntry& entry, const results::PlanResult& result) {
  std::vector<std::string> advice;
  if (!result.feasible() || result.fits()) {
    return advice;
  }
  std::vector<Outcome> fitting;
  scenario::PlanEntry all = entry;
  std::string all_text;
  for (const Fix& fix : fixes()) {
    if (!fix.applies(entry.plan)) {
      continue;
    }
    scenario::PlanEntry changed = entry;
    fix.turn_on(changed.plan);
    fix.turn_on(all.plan);
    all_text += fmt::format("{}{}", all_text.empty() ? "" : ", ", fix.text);
    auto outcome = try_plan(scenario, machine, changed, fix.text);
    if (outcome && outcome->figures.fit() != results::Fit::no) {
      fitting.push_back(std::move(*outcome));
    }
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const Outcome& a, const Outcome& b) { return a.figures.step_time < b.figures.step_time; });
  for (const Outcome& outcome : fitting) {
    advice.push_back(gives(outcome));
  }
  if (fitting.empty() && all_text.find(',') != std::string::npos) {
    const auto together = try_plan(scenario, machine, all, all_text);
    if (together && together->figures.fit() != results::Fit::no) {
      advice.push_back(gives(*together));
    }
  }
  if (const auto outcome = shorter(scenario, machine, entry)) {
    advice.push_back(gives(*outcome));
  }
  return advice;
}

}  // namespace ulysim::study
