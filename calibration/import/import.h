#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/import/machine.h"
#include "calibration/samples/table.h"

namespace ulysim::calibration {

/// What one file held, and how it was understood.
struct ImportedFile {
  std::string name{};    ///< without folders
  std::string format{};  ///< "nccl-tests text", "Kineto trace" …
  std::vector<Sample> samples{};
  std::optional<Machine> machine{};
  std::string collective{};       ///< where the file is of one collective
  std::string collective_from{};  ///< what said so
  std::optional<std::int64_t> ranks{};
  std::string ranks_from{};
  std::string gpu{};
  std::int64_t rows{};             ///< complete ones
  std::int64_t zero_size_rows{};   ///< skipped
  std::int64_t incomplete_rows{};  ///< skipped, the last one of a truncated file not among them
  bool truncated{};                ///< the file ends within a row
  std::vector<std::string> notes{};
};

/// Finds out what `text` is and reads it. `file` names it in messages. Throws InputError, each mistake with its line,
/// when the format is unknown, nothing in it is complete, or what it holds must not be used.
[[nodiscard]] ImportedFile import_text(std::string_view text, const std::string& file, const ImportHints& hints);

/// Every file, or one InputError with the mistakes of all.
[[nodiscard]] std::vector<ImportedFile> import_files(std::span<const std::string> paths, const ImportHints& hints);

/// `samples[]`, `files[]`, `machines[]`.
[[nodiscard]] std::string to_json(std::span<const ImportedFile> files);
/// The samples; import reads it back to the same samples.
[[nodiscard]] std::string to_csv(std::span<const ImportedFile> files);
/// For people: a paragraph a file.
[[nodiscard]] std::string to_text(std::span<const ImportedFile> files);

}  // namespace ulysim::calibration
