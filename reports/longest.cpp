#include "reports/longest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "reports/text.h"
#include "reports/verdict.h"
#include "sim/base/format.h"

namespace ulysim::reports {
namespace {

using results::LongestSequence;
using results::PlanResult;
using results::StudyResult;

constexpr std::size_t kMostLifts = 4;

std::string limit_words(const LongestSequence& longest) {
  switch (longest.limit) {
    case results::Limit::gpu_memory:
      return "GPU memory";
    case results::Limit::host_memory:
      return "host memory";
    case results::Limit::nvme:
      return "NVMe";
    case results::Limit::heads:
      return "heads";
    case results::Limit::plan:
      return "its options";
    case results::Limit::sequence_bound:
      break;
  }
  return "sequence bound";
}

std::string tokens_text(const LongestSequence& longest) {
  return longest.tokens ? human_count(*longest.tokens) : "none";
}

/// "4,194,304 tokens (3.56×, 8413 s a step): checkpoint_offload: cpu".
std::string reach(const results::Lift& lift, const LongestSequence& longest) {
  std::string ratio;
  if (longest.tokens) {
    ratio =
        fmt::format("{:.2f}×, ", static_cast<double>(lift.max_sequence_length) / static_cast<double>(*longest.tokens));
  }
  return fmt::format("{} tokens ({}{} a step): {}", human_count(lift.max_sequence_length), ratio, human(lift.step_time),
                     lift.option);
}

/// Plans whose options lift the longest of all beyond it.
const PlanResult* furthest(const StudyResult& study, std::int64_t beyond) {
  const PlanResult* best = nullptr;
  for (const PlanResult& plan : study.plans) {
    if (!plan.longest->lifts.empty() && plan.longest->lifts.front().max_sequence_length > beyond) {
      best = &plan;
      beyond = plan.longest->lifts.front().max_sequence_length;
    }
  }
  return best;
}

std::string with_more(const StudyResult& study, std::int64_t beyond) {
  const PlanResult* best = furthest(study, beyond);
  if (best == nullptr) {
    return {};
  }
  const results::Lift& lift = best->longest->lifts.front();
  return fmt::format("; {} with {} would reach {}", best->name, lift.option, human_count(lift.max_sequence_length));
}

}  // namespace

bool is_longest(const StudyResult& study) {
  return std::any_of(study.plans.begin(), study.plans.end(),
                     [](const PlanResult& plan) { return plan.longest.has_value(); });
}

std::string longest_verdict(const StudyResult& study) {
  const auto best = results::winner(study);
  if (!best) {
    const LongestSequence& first = *study.plans.front().longest;
    const std::string why = first.reasons.empty() ? limit_words(first) : first.reasons.front();
    return fmt::format("{} at any length: {}{}",
                       study.plans.size() == 1 ? study.plans.front().name + " does not train" : "no plan trains", why,
                       with_more(study, 0));
  }
  const PlanResult& plan = study.plans[*best];
  return fmt::format("{} {}: {} tokens, {} a step, {} tokens/s/GPU; {} stops it{}", plan.name,
                     study.plans.size() == 1 ? "trains up to" : "trains the longest sequence",
                     tokens_text(*plan.longest), human(plan.figures->step_time),
                     figure(plan.figures->tokens_per_s_per_gpu), limit_words(*plan.longest),
                     with_more(study, *plan.longest->tokens));
}

std::string longest_table(const StudyResult& study, const Style& style) {
  std::vector<std::vector<Cell>> rows;
  for (const PlanResult& plan : study.plans) {
    const LongestSequence& longest = *plan.longest;
    std::vector<Cell> row{
        {.text = printable(plan.name)}, {.text = tokens_text(longest)}, {.text = limit_words(longest)}};
    if (longest.tokens) {
      const results::Figures& f = *plan.figures;
      row.push_back({.text = human(f.peak_gpu_memory)});
      row.push_back({.text = f.peak_host_memory_per_node.value() > 0 ? human(f.peak_host_memory_per_node) : ""});
      row.push_back({.text = human(f.step_time)});
      row.push_back({.text = figure(f.tokens_per_s_per_gpu)});
    }
    row.resize(7);
    rows.push_back(std::move(row));
  }
  return grid({{.title = "plan"},
               {.title = "tokens", .align = Align::right},
               {.title = "limit"},
               {.title = "GPU", .align = Align::right},
               {.title = "host/node", .align = Align::right},
               {.title = "step", .align = Align::right},
               {.title = "tokens/s/GPU", .align = Align::right}},
              rows, style.width);
}

std::string limits(const StudyResult& study, std::size_t width) {
  std::string stops;
  std::string lifts;
  for (const PlanResult& plan : study.plans) {
    const LongestSequence& longest = *plan.longest;
    const std::string name = printable(plan.name);
    std::string why = fmt::format("{}", fmt::join(longest.reasons, "; "));
    if (longest.next_tokens) {
      why = fmt::format("{} tokens: {}", human_count(*longest.next_tokens), why);
    }
    for (const Infeasible& reason : plan.infeasible) {
      why += reason.suggestion.empty() ? "" : fmt::format("; try {}", reason.suggestion);
    }
    stops += wrapped(fmt::format("  {}: {}", name, printable(why)), width, 4);
    lifts += longest.lifts.empty() ? "" : wrapped(fmt::format("  {}", name), width, 4);
    for (std::size_t i = 0; i < std::min(longest.lifts.size(), kMostLifts); ++i) {
      lifts += wrapped(fmt::format("    {}", printable(reach(longest.lifts[i], longest))), width, 6);
    }
  }
  return fmt::format("\nWhat stops it at the next length:\n{}{}{}", stops,
                     lifts.empty() ? "" : "\nWhat would reach further:\n", lifts);
}

}  // namespace ulysim::reports
