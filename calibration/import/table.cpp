#include "calibration/import/readers.h"
#include "calibration/samples/text.h"

namespace ulysim::calibration {

ImportedFile import_table(std::string_view text, const std::string& file, const ImportHints& hints) {
  SampleTable table = parse_samples(text, file, hints);
  const auto rows = static_cast<std::int64_t>(table.samples.size());
  return {.format = trimmed(text).starts_with('|') ? "markdown table" : "CSV table",
          .samples = std::move(table.samples),
          .collective = std::move(table.collective),
          .collective_from = std::move(table.collective_from),
          .ranks = table.ranks,
          .ranks_from = std::move(table.ranks_from),
          .rows = rows};
}

}  // namespace ulysim::calibration
