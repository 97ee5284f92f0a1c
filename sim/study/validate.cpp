// Published measurements against predictions: read the files, simulate every row, turn the figure into the source's
// unit, score. Nothing here depends on a row's own answer: one set of parameters for all.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/study/asked.h"
#include "sim/study/maxseq.h"
#include "sim/study/study.h"
#include "sim/study/validate_file.h"
#include "sim/study/validate_score.h"

namespace ulysim::study {
namespace {

namespace fs = std::filesystem;
using results::PlanResult;
using results::ValidationRow;

constexpr double kTera = 1e12;

bool is_measurements(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

/// A folder's files in order of name; a file as it is.
std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return {path};
  }
  std::vector<fs::path> files;
  for (fs::directory_iterator it(path, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    if (is_measurements(it->path())) {
      files.push_back(it->path());
    }
  }
  if (files.empty()) {
    throw InputError(
        {{.where = {.file = path.string()}, .message = "no .yaml file of measurements is in this folder"}});
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_packing(const std::string& name) {
  return name.find(" pack_") != std::string::npos || name.find(" unpack_") != std::string::npos;
}

/// What ranks that compute and communicate in turn take for the attention of the step's layers, on the first rank.
double sequence_attention_seconds(const results::Figures& figures) {
  ULYSIM_CHECK(figures.trace && !figures.trace->ranks.empty(), "no trace to sum attention from");
  double total = 0.0;
  for (const results::TraceSpan& span : figures.trace->ranks.front().spans) {
    if (span.purpose == "attention" || span.purpose == "ulysses" || span.purpose == "ring" || is_packing(span.name)) {
      total += seconds(span.end - span.begin);
    }
  }
  return total;
}

/// The figure in the unit of the metric; `sequences` of the scenario's length make a step.
std::optional<double> in_source_unit(const Measurement& row, const PlanResult& plan) {
  const results::Figures& figures = *plan.figures;
  const scenario::Scenario& scenario = *row.scenario;
  const auto gpus = static_cast<double>(scenario.cluster.gpus);
  const double time = seconds(figures.step_time);
  const auto counted = [&](double own) {
    return row.convention
               ? convention_flops(scenario.model, scenario.plans.front().plan.sequence_length, *row.convention) *
                     static_cast<double>(plan.global_batch) / (time * gpus)
               : own;
  };
  const double peak = scenario.cluster.gpu.bf16.value.value();
  switch (row.metric) {
    case Metric::step_time_s:
      return time;
    case Metric::tokens_per_s_per_gpu:
      return figures.tokens_per_s_per_gpu;
    case Metric::tokens_per_s:
      return figures.tokens_per_s_per_gpu * gpus;
    case Metric::tflops_per_gpu:
      return counted(figures.model_tflops_per_gpu * kTera) / kTera;
    case Metric::mfu:
      return counted(figures.mfu * peak) / peak;
    case Metric::peak_gpu_memory_gib:
      return gibibytes(figures.peak_gpu_memory);
    case Metric::peak_gpu_allocated_gib:
      return gibibytes(figures.peak_gpu_allocated);
    case Metric::peak_gpu_reserved_gib:
      return gibibytes(figures.peak_gpu_reserved);
    case Metric::peak_host_memory_gib_per_node:
      return gibibytes(figures.peak_host_memory_per_node);
    case Metric::sequence_attention_s:
      return sequence_attention_seconds(figures);
    case Metric::max_sequence_length:
      return std::nullopt;
  }
  return std::nullopt;
}

void predict_longest(const scenario::Scenario& scenario, ValidationRow& out) {
  const results::LongestSequence longest =
      *longest_of(scenario, build_machine(scenario), scenario.plans.front(), {.detail = Detail::memory}).longest;
  if (longest.tokens) {
    out.predicted = static_cast<double>(*longest.tokens);
    out.note = fmt::format("limit: {}", results::name(longest.limit));
  } else {
    out.note = fmt::format("trains at no length: {}", fmt::join(longest.reasons, "; "));
  }
}

/// The least that tells what the row asks for.
Detail detail_of(const Measurement& row) {
  switch (row.metric) {
    case Metric::sequence_attention_s:
      return Detail::trace;
    case Metric::peak_gpu_memory_gib:
    case Metric::peak_gpu_allocated_gib:
    case Metric::peak_gpu_reserved_gib:
    case Metric::peak_host_memory_gib_per_node:
    case Metric::step_time_s:
      return Detail::memory;
    default:
      return row.outcome == Outcome::measured ? Detail::numbers : Detail::memory;
  }
}

void predict(const Measurement& row, ValidationRow& out) {
  if (!row.scenario) {
    out.note = row.refused;
    return;
  }
  try {
    if (row.outcome == Outcome::measured && row.metric == Metric::max_sequence_length) {
      predict_longest(*row.scenario, out);
      return;
    }
    const results::StudyResult study = run(*row.scenario, {.detail = detail_of(row)});
    ULYSIM_CHECK(!study.plans.empty(), "row '{}' has no plan in its result", row.id);
    const PlanResult& plan = study.plans.front();
    if (!plan.feasible()) {
      std::vector<std::string> reasons;
      std::transform(plan.infeasible.begin(), plan.infeasible.end(), std::back_inserter(reasons),
                     [](const Infeasible& why) { return why.reason; });
      out.note = fmt::format("cannot run: {}", fmt::join(reasons, "; "));
      return;
    }
    switch (row.outcome) {
      case Outcome::measured:
        out.predicted = in_source_unit(row, plan);
        break;
      case Outcome::oom:
        out.predicted = plan.fits() ? 0.0 : 1.0;
        break;
      case Outcome::fits:
        out.predicted = plan.fits() ? 1.0 : 0.0;
        break;
    }
    // Said also of a row that was measured: a prediction that it would not have run.
    out.note = fmt::format("{}", fmt::join(plan.does_not_fit, "; "));
  } catch (const RangeError& error) {
    out.note = error.what();
  }
}

std::string metric_of(const Measurement& row) {
  switch (row.outcome) {
    case Outcome::oom:
      return kOutOfMemory;
    case Outcome::fits:
      return kFits;
    case Outcome::measured:
      break;
  }
  return metric_names()[static_cast<std::size_t>(row.metric)];
}

/// Whatever lies inside the bracket is right; outside, the nearer end is the measure.
void bracket(const Bracket& known, ValidationRow& out) {
  const auto fits = static_cast<double>(known.fits_at);
  out.measured = std::clamp(out.predicted.value_or(fits), fits, static_cast<double>(known.fails_at));
  out.note +=
      fmt::format("{}measured: {} train, {} do not", out.note.empty() ? "" : "; ", known.fits_at, known.fails_at);
}

ValidationRow score(const Measurement& row, const std::string& source) {
  ValidationRow out{.source = source, .id = row.id, .metric = metric_of(row), .measured = row.measured.value_or(1.0)};
  predict(row, out);
  if (row.bracket) {
    bracket(*row.bracket, out);
  }
  if (!row.note.empty()) {
    out.note += (out.note.empty() ? "" : "; ") + row.note;
  }
  return out;
}

}  // namespace

results::ValidationResult validate(std::span<const fs::path> paths, const fs::path& data,
                                   const OnProgress& on_progress) {
  std::vector<fs::path> files;
  const fs::path shipped = data / "scenarios" / "published";
  for (const fs::path& path : paths.empty() ? std::span<const fs::path>(&shipped, 1) : paths) {
    for (fs::path& file : files_of(path)) {
      files.push_back(std::move(file));
    }
  }
  Diagnostics diagnostics;
  std::vector<Publication> publications;
  for (const fs::path& file : files) {
    try {
      publications.push_back(read_publication(file, data, diagnostics));
    } catch (const InputError& error) {
      for (const Diagnostic& found : error.diagnostics()) {
        diagnostics.error(found.where, found.message);
      }
    }
  }
  diagnostics.throw_if_any();
  std::size_t total = 0;
  for (const Publication& publication : publications) {
    total += publication.rows.size();
  }
  results::ValidationResult result;
  for (const Publication& publication : publications) {
    for (const Measurement& row : publication.rows) {
      tell(on_progress, result.rows.size(), total);
      result.rows.push_back(score(row, publication.name));
    }
  }
  result.summary = scoreboard(result.rows);
  return result;
}

}  // namespace ulysim::study
