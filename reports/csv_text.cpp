#include "reports/csv_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ulysim::reports {

std::string csv_text(std::string_view text) {
  const bool formula = !text.empty() && std::string_view("=+-@\t\r\n").find(text.front()) != std::string_view::npos;
  const std::string mark = formula ? "'" : "";
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return mark + std::string(text);
  }
  std::string out = '"' + mark;
  for (const char c : text) {
    out += c;
    if (c == '"') {
      out += '"';
    }
  }
  return out + '"';
}

std::string csv_number(double value) {
  return fmt::format("{}", value);
}

std::string csv_record(const std::vector<std::string>& cells) {
  return fmt::format("{}\r\n", fmt::join(cells, ","));
}

}  // namespace ulysim::reports
