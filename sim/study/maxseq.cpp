#include "sim/study/maxseq.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/format.h"
#include "sim/study/asked.h"
#include "sim/study/fixes.h"
#include "sim/study/length_search.h"
#include "sim/study/simulate.h"

namespace ulysim::study {

namespace {

using results::Fit;
using results::Limit;
using results::LongestSequence;

/// A reason that counts heads is one of heads; all others are the plan's.
Limit limit_of(const std::vector<Infeasible>& reasons) {
  const auto of_heads = [](const Infeasible& why) {
    return std::any_of(why.numbers.begin(), why.numbers.end(),
                       [](const auto& number) { return number.first == "heads" || number.first == "kv_heads"; });
  };
  return std::any_of(reasons.begin(), reasons.end(), of_heads) ? Limit::heads : Limit::plan;
}

/// What stops the plan behind `best`.
LongestSequence stopped(LengthSearch& search, std::size_t best) {
  const LegalLengths& lengths = search.lengths();
  LongestSequence longest{.limit = Limit::sequence_bound};
  if (best > 0) {
    longest.tokens = lengths.tokens(best);
  }
  if (best == lengths.count()) {
    longest.reasons = {fmt::format("{} tokens are the most that a scenario can ask for", human_count(*longest.tokens))};
    return longest;
  }
  longest.next_tokens = lengths.tokens(best + 1);
  const Probe& next = search.probe(best + 1);
  if (!next.out_of_range.empty()) {
    longest.reasons = {next.out_of_range};
    return longest;
  }
  if (!next.plan.feasible()) {
    longest.limit = limit_of(next.plan.infeasible);
    longest.next_tokens.reset();
    for (const Infeasible& why : next.plan.infeasible) {
      longest.reasons.push_back(why.reason);
    }
    return longest;
  }
  const results::Figures& too_long = *next.plan.figures;
  longest.limit = too_long.gpu_fit == Fit::no    ? Limit::gpu_memory
                  : too_long.host_fit == Fit::no ? Limit::host_memory
                                                 : Limit::nvme;
  // Behind the sentences of what does not fit may stand one of what is merely tight.
  std::copy_if(next.plan.does_not_fit.begin(), next.plan.does_not_fit.end(), std::back_inserter(longest.reasons),
               [](const std::string& why) { return why.starts_with("does not fit"); });
  return longest;
}

/// How far `entry` reaches beyond `best`, if at all.
std::optional<results::Lift> lift(const scenario::Scenario& scenario, const Machine& machine,
                                  const scenario::PlanEntry& entry, std::string option, std::size_t best) {
  if (!check(scenario, entry).empty()) {
    return std::nullopt;
  }
  LengthSearch search(scenario, machine, entry);
  if (best >= search.lengths().count() || !search.probe(best + 1).fits()) {
    return std::nullopt;
  }
  const std::size_t reached = search.longest(best + 1);
  return results::Lift{.option = std::move(option),
                       .max_sequence_length = search.lengths().tokens(reached),
                       .step_time = search.probe(reached).plan.figures->step_time};
}

}  // namespace

results::PlanResult longest_of(const scenario::Scenario& scenario, const Machine& machine,
                               const scenario::PlanEntry& entry, const StudyOptions& options) {
  LengthSearch search(scenario, machine, entry);
  const std::size_t best = search.longest(search.lengths().index_below(entry.plan.sequence_length));
  const scenario::PlanEntry shown = search.entry_at(std::max<std::size_t>(best, 1));
  results::PlanResult result = simulate(scenario, machine, shown, options);
  result.longest = stopped(search, best);
  return result;
}

std::vector<results::Lift> lifts_of(const scenario::Scenario& scenario, const Machine& machine,
                                    const scenario::PlanEntry& entry, const LongestSequence& longest) {
  if (longest.limit != Limit::gpu_memory && longest.limit != Limit::host_memory) {
    return {};
  }
  const std::size_t best = legal_lengths(scenario, entry).index_below(longest.tokens.value_or(0));
  std::vector<results::Lift> found;
  scenario::PlanEntry all = entry;
  std::vector<std::string> texts;
  for (const Fix& fix : fixes()) {
    if (!fix.applies(all.plan)) {  // one option may make room for the next
      continue;
    }
    fix.turn_on(all.plan);
    texts.emplace_back(fix.text);
    if (fix.applies(entry.plan)) {
      scenario::PlanEntry changed = entry;
      fix.turn_on(changed.plan);
      if (auto one = lift(scenario, machine, changed, fix.text, best)) {
        found.push_back(std::move(*one));
      }
    }
  }
  if (texts.size() > 1) {
    if (auto together = lift(scenario, machine, all, fmt::format("{}", fmt::join(texts, ", ")), best)) {
      found.push_back(std::move(*together));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const results::Lift& a, const results::Lift& b) {
    return std::pair(-a.max_sequence_length, a.step_time) < std::pair(-b.max_sequence_length, b.step_time);
  });
  return found;
}

results::StudyResult maxseq(const scenario::Scenario& scenario, const StudyOptions& options) {
  const Machine machine = build_machine(scenario);
  results::StudyResult study = study_of(scenario, machine);
  std::vector<std::string> beyond;
  for (const scenario::PlanEntry& entry : scenario.plans) {
    tell(options.on_progress, study.plans.size(), scenario.plans.size());
    study.plans.push_back(longest_of(scenario, machine, entry, options));
    LongestSequence& longest = *study.plans.back().longest;
    longest.lifts = lifts_of(scenario, machine, entry, longest);
    if (longest.tokens && beyond_positions(scenario, *longest.tokens)) {
      beyond.push_back(entry.plan.name);
    }
  }
  if (!beyond.empty()) {
    study.warnings.push_back(fmt::format("beyond the {} positions that {} was made for: {}",
                                         human_count(scenario.model.max_positions), scenario.model.name,
                                         fmt::join(beyond, "; ")));
  }
  return study;
}

}  // namespace ulysim::study
