// One row a plan (or a validation row), one column a figure, the unit in the column's name.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "reports/csv_text.h"
#include "reports/factories.h"
#include "reports/sweep_csv.h"
#include "reports/text.h"

namespace ulysim::reports {
namespace {

using Columns = std::vector<std::string>;

template <class T>
std::string or_empty(const std::optional<T>& value) {
  return value ? csv_number(*value) : std::string();
}

std::string gib(Bytes bytes) {
  return csv_number(gibibytes(bytes));
}

/// One row that grows by named cells; the header is the union over the rows, in order of first appearance.
class Table {
 public:
  void begin_row() { rows_.emplace_back(); }
  void add(const std::string& column, std::string cell) {
    const auto [found, added] = index_.try_emplace(column, columns_.size());
    if (added) {
      columns_.push_back(column);
    }
    auto& row = rows_.back();
    row.resize(std::max(row.size(), found->second + 1));
    row[found->second] = std::move(cell);
  }
  [[nodiscard]] std::string text() const {
    std::string out = csv_record(columns_);
    for (auto row : rows_) {
      row.resize(columns_.size());
      out += csv_record(row);
    }
    return out;
  }

 private:
  Columns columns_;
  std::map<std::string, std::size_t> index_;
  std::vector<Columns> rows_;
};

const char* fit_text(const results::PlanResult& plan) {
  if (!plan.feasible()) {
    return "";
  }
  const results::Fit fit = plan.figures->fit();
  return fit == results::Fit::yes ? "yes" : fit == results::Fit::risky ? "risky" : "no";
}

std::string reasons(const results::PlanResult& plan) {
  std::vector<std::string> all;
  for (const Infeasible& why : plan.infeasible) {
    all.push_back(why.reason);
  }
  all.insert(all.end(), plan.does_not_fit.begin(), plan.does_not_fit.end());
  return fmt::format("{}", fmt::join(all, "; "));
}

void add_figures(const results::PlanResult& plan, Table& table) {
  const results::Figures f = plan.figures.value_or(results::Figures{});
  const auto put = [&](const std::string& column, std::string cell) {
    table.add(column, plan.feasible() ? std::move(cell) : std::string());
  };
  put("step_time_s", csv_number(seconds(f.step_time)));
  put("tokens_per_s_per_gpu", csv_number(f.tokens_per_s_per_gpu));
  put("mfu", csv_number(f.mfu));
  put("model_tflops_per_gpu", csv_number(f.model_tflops_per_gpu));
  put("hardware_tflops_per_gpu", csv_number(f.hardware_tflops_per_gpu));
  put("peak_gpu_memory_gib", gib(f.peak_gpu_memory));
  put("peak_gpu_allocated_gib", gib(f.peak_gpu_allocated));
  put("peak_gpu_reserved_gib", gib(f.peak_gpu_reserved));
  put("gpu_memory_capacity_gib", gib(f.gpu_memory_capacity));
  put("peak_host_memory_gib_per_node", gib(f.peak_host_memory_per_node));
  put("total_days", or_empty(f.total_days));
  put("total_gpu_hours", or_empty(f.total_gpu_hours));
  put("total_cost", or_empty(f.total_cost));
  put("bottleneck", csv_text(f.bottleneck));
  for (const results::NamedDuration& part : f.breakdown) {
    put(fmt::format("breakdown_{}_s", part.name), csv_number(seconds(part.time)));
  }
  for (const results::NamedBytes& part : f.memory) {
    put(fmt::format("memory_{}_gib", part.name), gib(part.bytes));
  }
  for (const results::CommunicationUse& use : f.communication) {
    put(fmt::format("{}_bytes_per_gpu", use.name), fmt::to_string(use.bytes_per_gpu.value()));
    put(fmt::format("{}_s", use.name), csv_number(seconds(use.time)));
    put(fmt::format("{}_exposed_s", use.name), csv_number(seconds(use.exposed)));
  }
}

std::string to_csv(const results::StudyResult& study) {
  Table table;
  for (const results::PlanResult& plan : study.plans) {
    table.begin_row();
    table.add("scenario", csv_text(study.scenario.name));
    table.add("model", csv_text(study.scenario.model));
    table.add("node", csv_text(study.scenario.node));
    table.add("nodes", fmt::to_string(study.scenario.nodes));
    table.add("gpus", fmt::to_string(study.scenario.gpus));
    table.add("plan", csv_text(plan.name));
    if (plan.longest) {
      table.add("max_sequence_length", plan.longest->tokens ? fmt::to_string(*plan.longest->tokens) : std::string());
      table.add("limit", results::name(plan.longest->limit));
    }
    table.add("feasible", plan.feasible() ? "true" : "false");
    table.add("fit", fit_text(plan));
    table.add("reasons", csv_text(reasons(plan)));
    table.add("global_batch", fmt::to_string(plan.global_batch));
    add_figures(plan, table);
  }
  return table.text();
}

std::string to_csv(const results::ValidationResult& validation) {
  Table table;
  for (const results::ValidationRow& row : validation.rows) {
    table.begin_row();
    table.add("source", csv_text(row.source));
    table.add("id", csv_text(row.id));
    table.add("metric", csv_text(row.metric));
    table.add("measured", csv_number(row.measured));
    table.add("predicted", or_empty(row.predicted));
    table.add("low", or_empty(row.low));
    table.add("high", or_empty(row.high));
    table.add("note", csv_text(row.note));
  }
  return table.text();
}

std::string to_csv(const results::ModelInfo& model) {
  Table table;
  table.begin_row();
  table.add("name", csv_text(model.name));
  table.add("parameters", fmt::to_string(model.parameters));
  table.add("layers", fmt::to_string(model.layers));
  table.add("hidden", fmt::to_string(model.hidden));
  table.add("heads", fmt::to_string(model.heads));
  table.add("kv_heads", fmt::to_string(model.kv_heads));
  table.add("head_dim", fmt::to_string(model.head_dim));
  table.add("ffn", fmt::to_string(model.ffn));
  table.add("vocab", fmt::to_string(model.vocab));
  table.add("ulysses_degrees", csv_text(fmt::format("{}", fmt::join(model.ulysses_degrees, " "))));
  return table.text();
}

std::string to_csv(const results::SweepResult& sweep) {
  return sweep_csv(sweep);
}

/// The samples: what was measured, and what the fit says.
std::string to_csv(const results::FitResult& fit) {
  Table table;
  for (const results::FitResidual& r : fit.residuals) {
    table.begin_row();
    table.add("group", csv_text(r.group));
    table.add("label", csv_text(r.label));
    table.add("measured", csv_number(r.measured));
    table.add("fitted", csv_number(r.fitted));
    table.add("cross_validated", or_empty(r.cross_validated));
    table.add("unit", csv_text(r.unit));
  }
  return table.text();
}

class CsvWriter final : public ReportWriter {
 public:
  [[nodiscard]] std::string name() const override { return "csv"; }
  [[nodiscard]] std::string summary() const override { return "one row a plan, for spreadsheets and data frames"; }
  [[nodiscard]] std::string file_name() const override { return "plans.csv"; }
  [[nodiscard]] std::optional<std::string> write(const Report& report, const Style&) const override {
    return std::visit([](const auto* value) { return to_csv(*value); }, report);
  }
};

}  // namespace

const ReportWriter& csv_writer() {
  static const CsvWriter writer;
  return writer;
}

}  // namespace ulysim::reports
