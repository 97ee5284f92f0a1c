// Question: is every text either a saved result that all writers print and that comes back unchanged, or refused with a
// located sentence?

#include "reports/html.h"
#include "reports/result_reader.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"

namespace {

using namespace ulysim;
using namespace ulysim::reports;

void check_writers(const SavedResult& saved) {
  const Report report = report_of(saved);
  const std::string json = writer("json").write(report, {}).value();
  const SavedResult again = read_result(config::parse_json(json, "json"));
  ULYSIM_CHECK(writer("json").write(report_of(again), {}) == json, "the result comes back changed");
  for (const bool unicode : {false, true}) {
    ULYSIM_CHECK(writer("table").write(report, {.width = 60, .unicode = unicode}).has_value(), "no table");
  }
  ULYSIM_CHECK(writer("csv").write(report, {}).has_value(), "no CSV");
  static_cast<void>(fill_page("@ULYSIM_RESULT@", report));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::optional<SavedResult> saved;
  try {
    saved = read_result(config::parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "f"));
  } catch (const InputError& error) {
    ULYSIM_CHECK(!error.diagnostics().empty(), "refused without a reason");
    for (const Diagnostic& found : error.diagnostics()) {
      ULYSIM_CHECK(found.where.line >= 1 && found.where.column >= 1, "no place: {}", found.message);
      ULYSIM_CHECK(!found.message.empty() && found.message.size() < 400, "{}", found.message);
    }
  }
  if (saved) {
    check_writers(*saved);  // outside: a refusal of our own JSON is a failure
  }
  return 0;
}
