#include "tools/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "reports/html.h"
#include "reports/output.h"
#include "sim/base/check.h"
#include "tools/terminal.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;

struct Target {
  const char* writer{};
  const std::optional<std::string>* path{};
};

std::array<Target, 4> targets(const Arguments& arguments) {
  return {Target{"json", &arguments.json}, Target{"csv", &arguments.csv}, Target{"html", &arguments.html},
          Target{"trace", &arguments.trace}};
}

/// Whether anybody asked the simulation for its timeline.
bool has_timeline(const reports::Report& report) {
  const auto* const* study = std::get_if<const results::StudyResult*>(&report);
  return study != nullptr && std::any_of((*study)->plans.begin(), (*study)->plans.end(),
                                         [](const auto& plan) { return plan.figures && plan.figures->trace; });
}

void write_folder(const reports::Report& report, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    throw WorldError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  }
  for (const reports::ReportWriter* writer : reports::writers()) {
    if (writer->name() == "trace" && !has_timeline(report)) {
      continue;
    }
    if (const auto text = writer->write(report, file_style())) {
      reports::write_output(folder / writer->file_name(), *text);
    }
  }
}

}  // namespace

void check_outputs(const Arguments& arguments) {
  int to_stdout = 0;
  for (const Target& target : targets(arguments)) {
    if (*target.path && (*target.path)->empty()) {
      throw UsageError(fmt::format("--{} needs a file name", target.writer));
    }
    to_stdout += *target.path && **target.path == "-" ? 1 : 0;
  }
  if (to_stdout > 1) {
    throw UsageError("only one of --json, --csv, --html and --trace can go to standard output");
  }
  if (arguments.html && reports::report_page().empty()) {
    throw WorldError("--html: " + reports::why_no_page());
  }
}

void emit(const reports::Report& report, const Arguments& arguments) {
  bool table = !arguments.quiet;
  for (const Target& target : targets(arguments)) {
    if (*target.path) {
      table = table && **target.path != "-";
      const auto text = reports::writer(target.writer).write(report, file_style());
      if (!text) {
        throw UsageError(fmt::format("--{} cannot show a result of this kind", target.writer));
      }
      reports::write_output(**target.path, *text);
    }
  }
  if (arguments.out) {
    write_folder(report, *arguments.out);
  }
  if (table) {
    reports::write_stdout(*reports::writer("table").write(report, terminal_style(arguments)));
  }
}

}  // namespace ulysim::tools
