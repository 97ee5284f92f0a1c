#include <algorithm>
#include <array>

#include "reports/factories.h"
#include "sim/base/check.h"

namespace ulysim::reports {

std::span<const ReportWriter* const> writers() {
  static const std::array<const ReportWriter*, 5> all{&table_writer(), &json_writer(), &csv_writer(), &html_writer(),
                                                      &trace_writer()};
  return all;
}

const ReportWriter& writer(std::string_view name) {
  const auto all = writers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ReportWriter* w) { return w->name() == name; });
  ULYSIM_CHECK(found != all.end(), "there is no report writer '{}'", name);
  return **found;
}

}  // namespace ulysim::reports
