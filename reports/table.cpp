// Text for people. The answer first, then the table, then what binds each plan, then the fixes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "reports/factories.h"
#include "reports/fit_table.h"
#include "reports/longest.h"
#include "reports/memory_picture.h"
#include "reports/scoreboard.h"
#include "reports/sweep_text.h"
#include "reports/text.h"
#include "reports/verdict.h"
#include "sim/base/format.h"

namespace ulysim::reports {
namespace {

using results::Figures;
using results::Fit;
using results::PlanResult;
using results::StudyResult;

constexpr std::size_t kMostTensors = 8;

Cell coloured(std::string text, std::string_view colour, const Style& style) {
  if (!style.colour) {
    return {.text = std::move(text)};
  }
  return {.text = std::move(text), .before = std::string(colour), .after = std::string(kPlain)};
}

Cell fit_cell(const PlanResult& plan, const Style& style) {
  if (!plan.feasible()) {
    return coloured("can't", kRed, style);
  }
  switch (plan.figures->fit()) {
    case Fit::yes:
      return coloured("yes", kGreen, style);
    case Fit::risky:
      return coloured("risky", kYellow, style);
    case Fit::no:
      break;
  }
  return coloured("no", kRed, style);
}

std::string memory_title(const StudyResult& study) {
  for (const PlanResult& plan : study.plans) {
    if (plan.figures) {
      return fmt::format("of {}", human(plan.figures->gpu_memory_capacity));
    }
  }
  return "memory";
}

std::vector<Cell> plan_row(const PlanResult& plan, const Style& style) {
  std::vector<Cell> row{{.text = printable(plan.name)}, fit_cell(plan, style)};
  if (!plan.figures) {
    row.resize(7);
    return row;
  }
  const Figures& f = *plan.figures;
  const Duration exposed = part(f, "exposed_communication");
  row.push_back({.text = human(f.peak_gpu_memory)});
  row.push_back({.text = human(f.step_time)});
  row.push_back({.text = figure(f.tokens_per_s_per_gpu)});
  row.push_back({.text = percent(f.mfu)});
  row.push_back({.text = f.step_time.value() > 0 ? percent(exposed / f.step_time) : ""});
  return row;
}

std::string plans_table(const StudyResult& study, const Style& style) {
  const std::vector<Column> columns{{.title = "plan"},
                                    {.title = "fits"},
                                    {.title = memory_title(study), .align = Align::right},
                                    {.title = "step", .align = Align::right},
                                    {.title = "tokens/s/GPU", .align = Align::right},
                                    {.title = "MFU", .align = Align::right},
                                    {.title = "exposed", .align = Align::right}};
  std::vector<std::vector<Cell>> rows;
  for (const PlanResult& plan : study.plans) {
    rows.push_back(plan_row(plan, style));
  }
  return grid(columns, rows, style.width);
}

std::string head(const StudyResult& study) {
  const results::ScenarioEcho& s = study.scenario;
  const std::string tokens = is_longest(study) ? "" : fmt::format("{} tokens, ", human_count(s.sequence_length));
  return fmt::format("{}: {}, {}{} × {} ({} × {})", s.name, s.model, tokens, s.gpus, s.gpu, s.nodes, s.node);
}

std::string bindings(const StudyResult& study, std::size_t width) {
  std::string out;
  for (const PlanResult& plan : study.plans) {
    if (plan.figures && !plan.figures->bottleneck.empty()) {
      out += wrapped(fmt::format("  {}: {}", printable(plan.name), printable(plan.figures->bottleneck)), width, 4);
    }
  }
  return out.empty() ? out : "\nWhat binds:\n" + out;
}

std::string fixes(const StudyResult& study, std::size_t width) {
  std::string out;
  for (const PlanResult& plan : study.plans) {
    const auto line = [&](std::string_view text) {
      out += wrapped(fmt::format("  {}: {}", printable(plan.name), printable(text)), width, 4);
    };
    for (const Infeasible& why : plan.infeasible) {
      line(why.suggestion.empty() ? why.reason : fmt::format("{}; try {}", why.reason, why.suggestion));
    }
    for (const std::string& why : plan.does_not_fit) {
      line(why);
    }
    if (!plan.suggestions.empty()) {
      line(fmt::format("try: {}", fmt::join(plan.suggestions, "; ")));
    }
  }
  return out.empty() ? out : "\nIn the way:\n" + out;
}

std::string whole_run(const StudyResult& study, std::size_t width) {
  std::string out;
  for (const PlanResult& plan : study.plans) {
    if (plan.figures && plan.figures->total_days) {
      const Figures& f = *plan.figures;
      std::string text = fmt::format("  {}: {} days, {} GPU-hours", printable(plan.name), figure(*f.total_days),
                                     figure(f.total_gpu_hours.value_or(0.0)));
      if (f.total_cost) {
        text += fmt::format(", cost {}", figure(*f.total_cost));
      }
      out += wrapped(text, width, 4);
    }
  }
  return out.empty() ? out
                     : fmt::format("\nAll {} tokens:\n{}", human_count(study.scenario.total_tokens.value_or(0)), out);
}

/// Of a single plan: where its time and its memory go.
std::string details(const PlanResult& plan, const Style& style) {
  const Figures& f = *plan.figures;
  std::string out = "\n";
  std::vector<std::vector<Cell>> rows;
  for (const results::NamedDuration& p : f.breakdown) {
    if (p.time.value() > 0) {
      rows.push_back({{.text = in_words(p.name)}, {.text = human(p.time)}, {.text = percent(p.time / f.step_time)}});
    }
  }
  out += grid({{.title = "time"}, {.title = "", .align = Align::right}, {.title = "of step", .align = Align::right}},
              rows, style.width);
  rows.clear();
  for (const results::CommunicationUse& use : f.communication_by_purpose) {
    rows.push_back({{.text = in_words(use.name)},
                    {.text = human(use.bytes_per_gpu)},
                    {.text = human(use.time)},
                    {.text = human(use.exposed)}});
  }
  if (!rows.empty()) {
    out += '\n';
    out += grid({{.title = "communication"},
                 {.title = "sent per GPU", .align = Align::right},
                 {.title = "time", .align = Align::right},
                 {.title = "exposed", .align = Align::right}},
                rows, style.width);
  }
  out += '\n';
  out += memory_picture(f, style);
  if (!f.peak_tensors.empty()) {
    out += "\nLargest at the peak:\n";
    for (std::size_t i = 0; i < std::min(f.peak_tensors.size(), kMostTensors); ++i) {
      const results::PeakTensor& t = f.peak_tensors[i];
      out += item(fmt::format("  {:>9}", human(t.bytes)),
                  printable(t.name) + (t.count > 1 ? fmt::format(" ({} of them)", t.count) : ""), 13, style.width);
    }
  }
  return out;
}

std::string to_text(const StudyResult& study, const Style& style) {
  const bool good = results::winner(study).has_value();
  const bool longest = is_longest(study);
  std::string answer = wrapped(printable(longest ? longest_verdict(study) : verdict(study)), style.width, 2);
  if (style.colour) {
    answer.pop_back();
    answer = fmt::format("{}{}{}{}\n", kBold, good ? kGreen : kRed, answer, kPlain);
  }
  std::string out = wrapped(printable(head(study)), style.width, 2) + answer + '\n';
  if (longest) {
    out += longest_table(study, style);
    out += limits(study, style.width);
  } else {
    out += plans_table(study, style);
    out += bindings(study, style.width);
    out += fixes(study, style.width);
  }
  out += whole_run(study, style.width);
  if (study.plans.size() == 1 && study.plans.front().figures) {
    out += details(study.plans.front(), style);
  }
  for (const std::string& warning : study.warnings) {
    out += '\n' + wrapped("note: " + printable(warning), style.width, 6);
  }
  return out;
}

std::string to_text(const results::ValidationResult& validation, const Style& style) {
  return scoreboard(validation, style.width);
}

std::string to_text(const results::ModelInfo& m, const Style& style) {
  std::string out =
      fmt::format("{} ({}): {} parameters", printable(m.name), printable(m.model_type), human_count(m.parameters));
  if (m.active_parameters != m.parameters) {
    out += fmt::format(", {} of them active", human_count(m.active_parameters));
  }
  out = wrapped(out, style.width, 2) + '\n';
  constexpr std::size_t kColumn = 16;
  const auto line = [&](const char* name, const std::string& text) {
    out += item(fmt::format("  {}", name), text, kColumn, style.width);
  };
  line("layers", fmt::to_string(m.layers));
  line("hidden", fmt::to_string(m.hidden));
  line("heads", fmt::format("{} of {}, {} key/value", m.heads, m.head_dim, m.kv_heads));
  line("attention", printable(m.attention));
  line("ffn", fmt::format("{} ({})", m.ffn, printable(m.mlp)));
  line("vocabulary", fmt::format("{}{}", m.vocab, m.tied_embeddings ? " (embedding and head are one)" : ""));
  line("positions", human_count(m.max_positions));
  line("Ulysses", fmt::format("{}", fmt::join(m.ulysses_degrees, ", ")));
  return out;
}

std::string to_text(const results::SweepResult& sweep, const Style& style) {
  return sweep_text(sweep, style);
}

std::string to_text(const results::FitResult& fit, const Style& style) {
  return fit_table(fit, style.width);
}

class TableWriter final : public ReportWriter {
 public:
  [[nodiscard]] std::string name() const override { return "table"; }
  [[nodiscard]] std::string summary() const override { return "text for people"; }
  [[nodiscard]] std::string file_name() const override { return "summary.txt"; }
  [[nodiscard]] std::optional<std::string> write(const Report& report, const Style& style) const override {
    const std::string text = std::visit([&](const auto* value) { return to_text(*value, style); }, report);
    if (style.unicode) {
      return text;
    }
    // Colour codes are ASCII already, and stay.
    return to_ascii(text);
  }
};

}  // namespace

const ReportWriter& table_writer() {
  static const TableWriter writer;
  return writer;
}

}  // namespace ulysim::reports
