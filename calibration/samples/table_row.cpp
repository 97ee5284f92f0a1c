#include "calibration/samples/table_row.h"

#include <fmt/format.h>

#include <array>

#include "sim/base/named.h"
#include "sim/base/parse_quantity.h"

namespace ulysim::calibration {
namespace {

constexpr std::size_t kMostColumns = 64;

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
      "kind",   "collective", "ranks",          "bytes",     "time_s",    "time_us",   "bus_bandwidth_gb_s",
      "via",    "algbw_gb_s", "in_place",       "path",      "precision", "m",         "n",
      "k",      "batch",      "scheme",         "direction", "mask",      "sequences", "heads",
      "tflops", "kv_heads",   "head_dim",       "queries",   "keys",      "spread",    "runs",
      "regime", "clock_mhz",  "implementation", "power_w",   "gpu",       "fabric",    "software",
      "source"};
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

/// The header's columns; mistakes in them are told once.
std::vector<std::string> read_header(const Line& line, char separator, const std::string& file) {
  Diagnostics diagnostics;
  std::vector<std::string> columns;
  const Location at{.file = file, .line = line.number, .column = 1};
  const std::vector<std::string> titles = split_row(line.text, separator);
  if (titles.size() > kMostColumns) {
    diagnostics.error(at, "too many columns");
    diagnostics.throw_if_any();
  }
  for (const std::string& title : titles) {
    columns.push_back(column_of(title));
    const auto& known = known_columns();
    if (std::find(known.begin(), known.end(), columns.back()) == known.end()) {
      diagnostics.error(at, fmt::format("unknown column '{}'{}", shown(title), did_you_mean(shown(title), known)));
    } else if (std::count(columns.begin(), columns.end(), columns.back()) > 1) {
      diagnostics.error(at, fmt::format("column '{}' stands twice", columns.back()));
    }
  }
  diagnostics.throw_if_any();
  return columns;
}

}  // namespace

std::vector<NamedRow> named_rows(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  const char separator = trimmed(text.substr(0, text.find('\n'))).starts_with('|') ? '|' : ',';
  std::vector<std::string> columns;
  std::vector<NamedRow> rows;
  for (const Line& line : lines_of(text)) {
    if (trimmed(line.text).empty() || is_ruler(line.text)) {
      continue;
    }
    if (columns.empty()) {
      columns = read_header(line, separator, file);
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
  return rows;
}

std::string Row::text(const std::string& column) const {
  const auto found = row_->cells.find(column);
  return found == row_->cells.end() ? std::string() : found->second;
}

std::optional<std::int64_t> Row::count(const std::string& column) {
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

std::optional<std::int64_t> Row::count_or(const std::string& column, std::int64_t otherwise) {
  return has(column) ? count(column) : std::optional(otherwise);
}

std::optional<Printed> Row::number(const std::string& column) {
  const std::string whole = text(column);
  std::string_view cell = whole;
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
    error(fmt::format("cannot read '{}' as '{}'", shown(whole), column));
  }
  return value;
}

void Row::unknown(const std::string& column, const std::vector<std::string>& names) {
  const std::string cell = shown(text(column));
  error(cell.empty() ? fmt::format("'{}' is missing", column)
                     : fmt::format("unknown {} '{}'{}", column, cell, did_you_mean(cell, names)));
}

}  // namespace ulysim::calibration
