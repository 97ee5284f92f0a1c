#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/samples/names.h"
#include "calibration/samples/text.h"
#include "sim/base/diagnostics.h"

/// Rows of a table by the names of their columns; nothing outside of this folder uses them.
namespace ulysim::calibration {

struct NamedRow {
  Location where{};
  std::map<std::string, std::string> cells{};
};

/// Header and rows of a CSV or markdown table; mistakes of the header throw at once, those of rows (a wrong number of
/// cells) go to `diagnostics`.
[[nodiscard]] std::vector<NamedRow> named_rows(std::string_view text, const std::string& file,
                                               Diagnostics& diagnostics);

/// Reads one row's cells and tells what cannot be read.
class Row {
 public:
  Row(const NamedRow& row, Diagnostics& diagnostics) : row_(&row), diagnostics_(&diagnostics) {}

  [[nodiscard]] std::string text(const std::string& column) const;
  [[nodiscard]] bool has(const std::string& column) const { return !text(column).empty(); }
  /// A count above 0, "1MiB" where it is of bytes; a missing one is a mistake.
  std::optional<std::int64_t> count(const std::string& column);
  /// The same, `otherwise` where the cell is empty.
  std::optional<std::int64_t> count_or(const std::string& column, std::int64_t otherwise);
  /// A positive number, perhaps with `GB/s` or `GBps` behind it; nothing when the cell is empty.
  std::optional<Printed> number(const std::string& column);
  /// One of the names of T; nothing, and a mistake, when it is none of them. An empty cell too.
  template <class T>
  std::optional<T> choice(const std::string& column) {
    const auto& names = kNames<T>;
    const auto found = std::find(names.begin(), names.end(), text(column));
    if (found == names.end()) {
      unknown(column, {names.begin(), names.end()});
      return std::nullopt;
    }
    return static_cast<T>(found - names.begin());
  }
  /// The same; nothing where the cell is empty.
  template <class T>
  std::optional<T> maybe(const std::string& column) {
    return has(column) ? choice<T>(column) : std::nullopt;
  }
  void error(std::string message) { diagnostics_->error(row_->where, std::move(message)); }

 private:
  void unknown(const std::string& column, const std::vector<std::string>& names);

  const NamedRow* row_;
  Diagnostics* diagnostics_;
};

}  // namespace ulysim::calibration
