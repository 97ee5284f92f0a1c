#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/samples/sample.h"

namespace ulysim::calibration {

/// What a text does not say and its owner knows. A text that says otherwise is refused.
struct ImportHints {
  std::optional<std::string> collective{};
  std::optional<std::int64_t> ranks{};
};

/// What was read from a table, and how it was understood.
struct SampleTable {
  std::vector<Sample> samples{};
  std::string collective{};       ///< "all_reduce"; "several"
  std::string collective_from{};  ///< what said so: "its column"
  std::optional<std::int64_t> ranks{};
  std::string ranks_from{};
};

/// The one reader of samples: the catalogue's, our own runs', what `calibrate import` wrote, what people paste. CSV, or
/// markdown with '|'; columns by name in any order (README.md lists them). Throws InputError with file:line of every
/// row that cannot be read, for unknown or repeated columns, and for a table without rows.
[[nodiscard]] SampleTable parse_samples(std::string_view text, const std::string& file, const ImportHints& hints = {});
[[nodiscard]] std::vector<Sample> load_samples(const std::filesystem::path& path);

/// One cell of a row of the table, by its column.
struct Cell {
  enum class Kind : std::uint8_t { text, number, truth };
  std::string_view column{};
  std::string text{};  ///< empty where it does not apply
  Kind kind{Kind::text};
};
/// Every column that is written, in order, with its end of line in text form. parse_samples reads them back to the
/// same sample.
[[nodiscard]] std::vector<Cell> columns_of(const Sample& sample);
[[nodiscard]] std::string sample_header();
[[nodiscard]] std::string sample_row(const Sample& sample);

}  // namespace ulysim::calibration
