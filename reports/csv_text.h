#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ulysim::reports {

/// Text as a cell: quoted where RFC 4180 asks for it. What a spreadsheet would take for a formula gets a leading
/// apostrophe (OWASP, CSV injection).
[[nodiscard]] std::string csv_text(std::string_view text);

/// Shortest text that reads back to the same double; the same on every machine.
[[nodiscard]] std::string csv_number(double value);

/// Cells as a record with its CRLF.
[[nodiscard]] std::string csv_record(const std::vector<std::string>& cells);

}  // namespace ulysim::reports
