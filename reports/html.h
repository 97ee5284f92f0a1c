#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reports/writer.h"

namespace ulysim::reports {

/// The page that shows a result, without one; empty where it was not built (see reports/web).
[[nodiscard]] std::string_view report_page();

/// Why `report_page()` is empty and what to do about it.
[[nodiscard]] std::string why_no_page();

/// `page` with `report` as JSON in place of its "@ULYSIM_RESULT@"; nothing where the page cannot show such a result.
/// Nothing in the result can end the script element that holds it: <, >, & and the line separators U+2028 and U+2029
/// are \u escapes. Requires a page with exactly one placeholder.
[[nodiscard]] std::optional<std::string> fill_page(std::string_view page, const Report& report);

}  // namespace ulysim::reports
