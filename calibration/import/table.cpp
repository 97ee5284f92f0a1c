// Tables with named columns: our own CSV, the catalogue's GEMM samples, and what people paste (markdown, units in the
// cells). README.md lists the columns.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "calibration/import/nccl_tests.h"
#include "calibration/import/readers.h"
#include "sim/base/named.h"
#include "sim/base/parse_quantity.h"

namespace ulysim::calibration {
namespace {

constexpr std::size_t kMostColumns = 64;
constexpr double kLeastSeconds = 1e-12;
constexpr double kMostSeconds = 1e12;

struct Alias {
  std::string_view text{};
  std::string_view column{};
};
constexpr std::array<Alias, 9> kAliases{{{"payload", "bytes"},
                                         {"size", "bytes"},
                                         {"size_bytes", "bytes"},
                                         {"busbw", "bus_bandwidth_gb_s"},
                                         {"algbw", "algbw_gb_s"},
                                         {"time", "time_s"},
                                         {"nranks", "ranks"},
                                         {"gpus", "ranks"},
                                         {"operation", "collective"}}};
const std::vector<std::string>& known_columns() {
  static const std::vector<std::string> columns{
      "kind",       "collective", "ranks",     "bytes", "time_s", "time_us", "bus_bandwidth_gb_s",
      "algbw_gb_s", "in_place",   "precision", "m",     "n",      "k",       "batch",
      "tflops",     "spread",     "runs",      "gpu",   "regime", "source"};
  return columns;
}

std::string column_of(std::string_view title) {
  std::string name;
  for (const char c : title) {
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == ' ' ? '_' : c;
  }
  for (const Alias& alias : kAliases) {
    if (alias.text == name) {
      return std::string(alias.column);
    }
  }
  return name;
}

/// RFC 4180: cells may stand in quotes, in which a quote is doubled.
std::vector<std::string> csv_cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  for (std::string& cell : cells) {
    cell = std::string(trimmed(cell));
  }
  return cells;
}

std::vector<std::string> split_row(std::string_view line, char separator) {
  if (separator == ',') {
    return csv_cells(line);
  }
  line = trimmed(line);
  line.remove_prefix(line.starts_with('|') ? 1 : 0);
  line.remove_suffix(line.ends_with('|') ? 1 : 0);
  const auto cells = cells_of(line, separator);
  return {cells.begin(), cells.end()};
}

bool is_ruler(std::string_view line) {
  return line.find('-') != std::string_view::npos && line.find_first_not_of("|-: \t") == std::string_view::npos;
}

/// One row's cells, by column.
class Row {
 public:
  Row(const std::map<std::string, std::string>& cells, Location where, Diagnostics& diagnostics)
      : cells_(&cells), where_(std::move(where)), diagnostics_(&diagnostics) {}

  [[nodiscard]] std::string text(const std::string& column) const {
    const auto found = cells_->find(column);
    return found == cells_->end() ? std::string() : found->second;
  }
  [[nodiscard]] bool has(const std::string& column) const { return !text(column).empty(); }

  /// A count, "1MiB" where it is of bytes; above 0.
  std::optional<std::int64_t> count(const std::string& column) {
    const std::string cell = text(column);
    if (cell.empty()) {
      error(fmt::format("'{}' is missing", column));
      return std::nullopt;
    }
    std::int64_t value = 0;
    const auto plain = parse_count(cell);
    if (const auto* number = std::get_if<std::int64_t>(&plain)) {
      value = *number;
    } else if (const auto bytes = parse_bytes(cell); column == "bytes" && bytes.index() == 0) {
      value = std::get<Bytes>(bytes).value();
    } else {
      error(fmt::format("'{}': {}", column, std::get<std::string>(plain)));
      return std::nullopt;
    }
    if (value <= 0) {
      error(fmt::format("'{}' must be above 0", column));
      return std::nullopt;
    }
    return value;
  }
  /// A positive number, perhaps with `GB/s` or `GBps` behind it; nothing when the cell is empty.
  std::optional<Printed> number(const std::string& column) {
    std::string_view cell = cells_->contains(column) ? std::string_view(cells_->at(column)) : std::string_view();
    if (cell.empty()) {
      return std::nullopt;
    }
    if (column.ends_with("gb_s")) {
      for (const std::string_view unit : {"GBps", "GB/s"}) {
        cell.remove_suffix(cell.ends_with(unit) ? unit.size() : 0);
      }
      cell = trimmed(cell);
    }
    const auto value = printed_number(cell);
    if (!value) {
      error(fmt::format("cannot read '{}' as '{}'", shown(text(column)), column));
    }
    return value;
  }
  void error(std::string message) { diagnostics_->error(where_, std::move(message)); }

 private:
  const std::map<std::string, std::string>* cells_;
  Location where_;
  Diagnostics* diagnostics_;
};

void read_common(Row& row, Measurement& sample) {
  if (const auto spread = row.number("spread")) {
    sample.spread = spread->value;
  }
  if (row.has("runs")) {
    sample.runs = row.count("runs").value_or(1);
  }
  sample.regime = row.text("regime");
  if (!sample.regime.empty() && sample.regime != "burst" && sample.regime != "sustained") {
    row.error(fmt::format("'regime' is burst or sustained, not '{}'", shown(sample.regime)));
  }
  sample.gpu = row.text("gpu");
  sample.source = row.text("source");
}

std::optional<double> seconds_of(Row& row) {
  const auto seconds = row.number("time_s");
  if (seconds) {
    return seconds->value;
  }
  const auto micro = row.number("time_us");
  return micro ? std::optional(micro->value / 1e6) : std::nullopt;
}

const CollectiveInfo* collective_of(Row& row, const ImportHints& hints, const std::optional<Ratio>& ratio,
                                    ImportedFile& out) {
  const std::string named = row.has("collective") ? row.text("collective") : hints.collective.value_or("");
  if (!named.empty()) {
    const CollectiveInfo* found = find_collective(named);
    if (found == nullptr) {
      row.error(fmt::format("no collective '{}'; known: {}", shown(named), known_collectives()));
    }
    out.collective_from = row.has("collective") ? "its column" : "--collective";
    return found;
  }
  if (ratio && ratio->low > 1.0) {
    out.collective_from = "busbw above algbw";
    return find_collective("all_reduce");
  }
  row.error("which collective it is does not show; add a column 'collective', or say --collective NAME");
  return nullptr;
}

std::optional<std::int64_t> ranks_of(Row& row, const CollectiveInfo& collective, const ImportHints& hints,
                                     const std::optional<Ratio>& ratio, ImportedFile& out) {
  if (row.has("ranks")) {
    out.ranks_from = "its column";
    return row.count("ranks");
  }
  if (hints.ranks) {
    out.ranks_from = "--ranks";
    return hints.ranks;
  }
  const auto estimate = ratio && collective.factor == BusFactor::twice_share ? ranks_from(*ratio) : std::nullopt;
  if (!estimate) {
    row.error("how many ranks took part does not show; add a column 'ranks', or say --ranks N");
    return std::nullopt;
  }
  out.ranks_from = "busbw over algbw";
  return estimate->ranks;
}

void read_collective(Row& row, const ImportHints& hints, const std::optional<Ratio>& ratio, ImportedFile& out) {
  Measurement sample;
  const CollectiveInfo* collective = collective_of(row, hints, ratio, out);
  if (collective == nullptr) {
    return;
  }
  const auto ranks = ranks_of(row, *collective, hints, ratio, out);
  const auto bytes = row.count("bytes");
  if (!ranks || !bytes) {
    return;
  }
  if (*ranks < 2) {
    row.error("one rank alone communicates with nobody");
    return;
  }
  const auto busbw = row.number("bus_bandwidth_gb_s");
  const auto algbw = row.number("algbw_gb_s");
  const double factor = bus_factor(*collective, *ranks);
  const auto size = static_cast<double>(*bytes);
  auto seconds = seconds_of(row);
  if (!seconds && algbw && algbw->value > 0.0) {
    seconds = size / (algbw->value * 1e9);
  }
  if (!seconds && busbw && busbw->value > 0.0) {
    seconds = size * factor / (busbw->value * 1e9);
  }
  if (!seconds || *seconds < kLeastSeconds || *seconds > kMostSeconds) {
    row.error("a time of 1 ps to 1e12 s, or a bandwidth, is needed");
    return;
  }
  sample.what = CollectiveRun{.collective = std::string(collective->name),
                              .ranks = *ranks,
                              .bytes = *bytes,
                              .in_place = row.text("in_place") == "true"};
  if (row.has("in_place") && row.text("in_place") != "true" && row.text("in_place") != "false") {
    row.error("'in_place' is true or false");
  }
  sample.seconds = *seconds;
  sample.bus_bandwidth_gb_s = busbw ? busbw->value : size / *seconds / 1e9 * factor;
  read_common(row, sample);
  out.collective = out.samples.empty() || out.collective == collective->name ? collective->name : "several";
  out.ranks = ranks;
  out.samples.push_back(std::move(sample));
}

void read_gemm(Row& row, ImportedFile& out) {
  static const std::vector<std::string> kPrecisions{"bf16", "fp8", "mxfp8", "nvfp4"};
  const auto precision = std::find(kPrecisions.begin(), kPrecisions.end(), row.text("precision"));
  if (precision == kPrecisions.end()) {
    row.error(fmt::format("unknown precision '{}'{}", shown(row.text("precision")),
                          did_you_mean(row.text("precision"), kPrecisions)));
    return;
  }
  const auto m = row.count("m");
  const auto n = row.count("n");
  const auto k = row.count("k");
  const auto batch = row.has("batch") ? row.count("batch") : std::optional<std::int64_t>(1);
  if (!m || !n || !k || !batch) {
    return;
  }
  const double flops =
      2.0 * static_cast<double>(*m) * static_cast<double>(*n) * static_cast<double>(*k) * static_cast<double>(*batch);
  const auto tflops = row.number("tflops");
  auto seconds = seconds_of(row);
  if (!seconds && tflops && tflops->value > 0.0) {
    seconds = flops / (tflops->value * 1e12);
  }
  if (!seconds || *seconds < kLeastSeconds || *seconds > kMostSeconds) {
    row.error("a time of 1 ps to 1e12 s, or a rate, is needed");
    return;
  }
  Measurement sample{.what = kernel::Gemm{.m = *m,
                                          .n = *n,
                                          .k = *k,
                                          .batch = *batch,
                                          .precision = static_cast<kernel::Precision>(precision - kPrecisions.begin())},
                     .seconds = *seconds,
                     .tflops = tflops ? tflops->value : flops / *seconds / 1e12};
  read_common(row, sample);
  out.samples.push_back(std::move(sample));
}

struct NamedRow {
  Location where{};
  std::map<std::string, std::string> cells{};
};

/// The header's columns; mistakes in them are told once.
std::vector<std::string> read_header(const Line& line, char separator, const std::string& file,
                                     Diagnostics& diagnostics) {
  std::vector<std::string> columns;
  const std::vector<std::string> titles = split_row(line.text, separator);
  if (titles.size() > kMostColumns) {
    diagnostics.error({.file = file, .line = line.number, .column = 1}, "too many columns");
    return {};
  }
  for (const std::string& title : titles) {
    columns.push_back(column_of(title));
    const auto& known = known_columns();
    const Location at{.file = file, .line = line.number, .column = 1};
    if (std::find(known.begin(), known.end(), columns.back()) == known.end()) {
      diagnostics.error(at, fmt::format("unknown column '{}'{}", shown(title), did_you_mean(shown(title), known)));
    } else if (std::count(columns.begin(), columns.end(), columns.back()) > 1) {
      diagnostics.error(at, fmt::format("column '{}' stands twice", columns.back()));
    }
  }
  return columns;
}

/// Over all rows: of one table is one collective over as many ranks.
std::optional<Ratio> common_ratio(const std::vector<NamedRow>& rows) {
  Ratio ratio{.low = 0.0, .high = 1e300};
  bool any = false;
  Diagnostics ignored;  // told when the row is read
  for (const NamedRow& named : rows) {
    Row row(named.cells, named.where, ignored);
    const auto busbw = row.number("bus_bandwidth_gb_s");
    const auto algbw = row.number("algbw_gb_s");
    if (busbw && algbw && algbw->value > 0.0) {
      const Ratio one = ratio_of(*busbw, *algbw);
      ratio = {.low = std::max(ratio.low, one.low), .high = std::min(ratio.high, one.high)};
      any = true;
    }
  }
  return any ? std::optional(ratio) : std::nullopt;
}

}  // namespace

ImportedFile import_table(std::string_view text, const std::string& file, const ImportHints& hints) {
  const char separator = trimmed(text.substr(0, text.find('\n'))).starts_with('|') ? '|' : ',';
  ImportedFile out{.format = separator == '|' ? "markdown table" : "CSV table"};
  Diagnostics diagnostics;
  std::vector<std::string> columns;
  std::vector<NamedRow> rows;
  for (const Line& line : lines_of(text)) {
    if (trimmed(line.text).empty() || is_ruler(line.text)) {
      continue;
    }
    if (columns.empty()) {
      columns = read_header(line, separator, file, diagnostics);
      diagnostics.throw_if_any();
      continue;
    }
    const std::vector<std::string> cells = split_row(line.text, separator);
    NamedRow row{.where = {.file = file, .line = line.number, .column = 1}};
    if (cells.size() != columns.size()) {
      diagnostics.error(row.where, fmt::format("{} cells instead of {}", cells.size(), columns.size()));
      continue;
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      row.cells.emplace(columns[i], cells[i]);
    }
    rows.push_back(std::move(row));
  }
  const std::optional<Ratio> ratio = common_ratio(rows);
  for (const NamedRow& named : rows) {
    Row row(named.cells, named.where, diagnostics);
    if (row.has("m") || row.text("kind") == "gemm") {
      read_gemm(row, out);
    } else {
      read_collective(row, hints, ratio, out);
    }
  }
  out.rows = static_cast<std::int64_t>(out.samples.size());
  if (rows.empty()) {
    diagnostics.error({.file = file, .line = 1, .column = 1}, "a table without rows");
  }
  diagnostics.throw_if_any();
  return out;
}

}  // namespace ulysim::calibration
