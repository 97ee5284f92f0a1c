#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "calibration/import/machine.h"
#include "hw_models/kernel/kernel.h"

namespace ulysim::calibration {

/// One size of one collective, as nccl-tests defines them: `bytes` is the larger of what a rank sends and receives.
struct CollectiveRun {
  std::string collective{};
  std::int64_t ranks{};
  std::int64_t bytes{};
  bool in_place{};
};

/// A row of the one table of samples, whatever it was read from.
struct Measurement {
  std::variant<CollectiveRun, kernel::Gemm> what{};
  double seconds{};                            ///< median, or the mean that the source prints
  std::optional<double> bus_bandwidth_gb_s{};  ///< of a collective; as printed where it is
  std::optional<double> tflops{};              ///< of a GEMM
  std::optional<double> spread{};              ///< relative
  std::int64_t runs{1};                        ///< that the source lists; 1 for one printed figure
  std::string regime{};                        ///< "burst", "sustained"; empty when the source does not say
  std::string gpu{};                           ///< empty when the source does not name it
  std::string source{};                        ///< of a table with a column of that name
};

/// What one file held, and how it was understood.
struct ImportedFile {
  std::string name{};    ///< without folders
  std::string format{};  ///< "nccl-tests text", "Kineto trace" …
  std::vector<Measurement> samples{};
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

/// What a file does not say and its owner knows. A file that says otherwise is refused.
struct ImportHints {
  std::optional<std::string> collective{};
  std::optional<std::int64_t> ranks{};
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
