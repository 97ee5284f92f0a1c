#pragma once

#include "reports/writer.h"

namespace ulysim::reports {

// One per writer, each defined in the .cpp of its name and listed in catalog.cpp.
[[nodiscard]] const ReportWriter& table_writer();
[[nodiscard]] const ReportWriter& json_writer();
[[nodiscard]] const ReportWriter& csv_writer();
[[nodiscard]] const ReportWriter& html_writer();
[[nodiscard]] const ReportWriter& trace_writer();

}  // namespace ulysim::reports
