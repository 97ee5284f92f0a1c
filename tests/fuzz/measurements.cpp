// Question: is every text either imported into samples that our CSV keeps and our JSON can print, or refused with a
// located sentence?

#include <array>

#include "calibration/import/import.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"
#include "sim/config/document.h"

namespace {

using namespace ulysim;
using namespace ulysim::calibration;

void check_samples(const ImportedFile& file) {
  const std::array<ImportedFile, 1> files{file};
  const config::Node root = config::parse_json(to_json(files), "json");
  ULYSIM_CHECK(root.find("samples")->items.size() == file.samples.size(), "samples are lost in JSON");
  ULYSIM_CHECK(!to_text(files).empty(), "nothing to print");
  if (file.samples.empty()) {
    ULYSIM_CHECK(file.machine.has_value(), "accepted, and nothing came of it");
    return;
  }
  const std::string csv = to_csv(files);
  const std::array<ImportedFile, 1> again{import_text(csv, "csv", {})};
  ULYSIM_CHECK(to_csv(again) == csv, "the CSV comes back changed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::optional<ImportedFile> file;
  try {
    file = import_text(std::string_view(reinterpret_cast<const char*>(data), size), "f", {});
  } catch (const InputError& error) {
    ULYSIM_CHECK(!error.diagnostics().empty(), "refused without a reason");
    for (const Diagnostic& found : error.diagnostics()) {
      ULYSIM_CHECK(found.where.line >= 1 && found.where.column >= 1, "no place: {}", found.message);
      ULYSIM_CHECK(!found.message.empty() && found.message.size() < 400, "{}", found.message);
    }
  }
  if (file) {
    check_samples(*file);  // outside: a refusal of our own CSV is a failure
  }
  return 0;
}
