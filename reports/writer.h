#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "sim/results/study_result.h"
#include "sim/results/sweep_result.h"

namespace ulysim::reports {

/// How text for people looks. Files for programs ignore it.
struct Style {
  std::size_t width{80};  ///< columns of the terminal
  bool unicode{};         ///< else plain ASCII
  bool colour{};
};

/// What a command hands over to be printed; never null.
using Report = std::variant<const results::StudyResult*, const results::ValidationResult*, const results::ModelInfo*,
                            const results::SweepResult*, const results::FitResult*>;

/// One output format. Contract: the same report and style give the same bytes; a format that has nothing to say about
/// this kind of report gives nullopt. Writers only print: every figure is in the report.
class ReportWriter {
 public:
  virtual ~ReportWriter() = default;
  [[nodiscard]] virtual std::string name() const = 0;       ///< "table", "json" …
  [[nodiscard]] virtual std::string summary() const = 0;    ///< one line for `list`
  [[nodiscard]] virtual std::string file_name() const = 0;  ///< in `-o DIR`: "result.json"
  [[nodiscard]] virtual std::optional<std::string> write(const Report& report, const Style& style) const = 0;
};

/// The family, in order of use.
[[nodiscard]] std::span<const ReportWriter* const> writers();
/// InternalError when there is none of that name.
[[nodiscard]] const ReportWriter& writer(std::string_view name);

}  // namespace ulysim::reports
