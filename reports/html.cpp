#include "reports/html.h"

#include <array>
#include <utility>

#include "reports/factories.h"
#include "reports/json.h"
#include "sim/base/check.h"

namespace ulysim::reports {
namespace {

constexpr std::string_view kPlaceholder = "@ULYSIM_RESULT@";

// JSON has these within strings only, so an escape always stands for them. U+2028 and U+2029 end a line of a script.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEscapes{
    {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}}};

std::string harmless(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 16);
  while (!json.empty()) {
    const std::size_t plain = std::min(json.find_first_of("<>&\xE2"), json.size());
    out += json.substr(0, plain);
    json.remove_prefix(plain);
    if (json.empty()) {
      break;
    }
    std::size_t taken = 1;
    std::string_view written = json.substr(0, 1);
    for (const auto& [sign, escape] : kEscapes) {
      if (json.starts_with(sign)) {
        taken = sign.size();
        written = escape;
      }
    }
    out += written;
    json.remove_prefix(taken);
  }
  return out;
}

class HtmlWriter final : public ReportWriter {
 public:
  [[nodiscard]] std::string name() const override { return "html"; }
  [[nodiscard]] std::string summary() const override {
    return "one page with pictures, opens anywhere, needs no network";
  }
  [[nodiscard]] std::string file_name() const override { return "report.html"; }
  [[nodiscard]] std::optional<std::string> write(const Report& report, const Style&) const override {
    return report_page().empty() ? std::nullopt : fill_page(report_page(), report);
  }
};

}  // namespace

std::string why_no_page() {
  return "this program was built without the HTML page; install Node.js 18 or newer and npm (on Debian: apt-get "
         "install "
         "nodejs npm), configure with -DULYSIM_HTML=ON, which tells what is still missing, and build again";
}

std::optional<std::string> fill_page(std::string_view page, const Report& report) {
  if (std::holds_alternative<const results::ModelInfo*>(report)) {
    return std::nullopt;
  }
  const std::size_t at = page.find(kPlaceholder);
  ULYSIM_CHECK(at != std::string_view::npos && page.find(kPlaceholder, at + 1) == std::string_view::npos,
               "the page has none or several places for the result");
  std::string out(page.substr(0, at));
  out += harmless(json_text(report, config::JsonLayout::compact));
  out += page.substr(at + kPlaceholder.size());
  return out;
}

const ReportWriter& html_writer() {
  static const HtmlWriter writer;
  return writer;
}

}  // namespace ulysim::reports
