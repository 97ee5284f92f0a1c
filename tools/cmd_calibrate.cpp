#include <fmt/format.h>

#include <filesystem>

#include "calibration/commands.h"
#include "calibration/import/import.h"
#include "calibration/samples/table.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/load.h"
#include "reports/output.h"
#include "reports/result_reader.h"
#include "sim/base/check.h"
#include "sim/base/named.h"
#include "sim/base/parse_quantity.h"
#include "tools/command.h"
#include "tools/data_folder.h"
#include "tools/emit.h"
#include "tools/sibling.h"
#include "tools/terminal.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;

fs::path made_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw WorldError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  }
  return folder;
}

/// Any number of samples files, ours or imported, as one list.
std::vector<calibration::Sample> read_samples(const std::vector<std::string>& paths) {
  std::vector<calibration::Sample> samples;
  for (const std::string& path : paths) {
    for (calibration::Sample& sample : calibration::load_samples(path)) {
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

/// As a file, or as the page that a saved one gives.
void write_report(const std::string& json, const Arguments& arguments) {
  if (arguments.json) {
    reports::write_output(*arguments.json, json);
  }
  if (arguments.html) {
    const reports::SavedResult report = reports::read_result(config::parse_json(json, "calibrate fit"));
    reports::write_output(*arguments.html,
                          reports::writer("html").write(reports::report_of(report), file_style()).value());
  }
}

/// The report on the terminal, as JSON or HTML, the files into a folder that is laid out as the catalogue is. Without a
/// folder the profile follows the report.
int fit(const std::string& name, const fs::path& catalog, const Arguments& arguments) {
  check_outputs(arguments);
  const calibration::FitOutput fitted = arguments.samples.empty()
                                            ? calibration::run_fit(catalog, name)
                                            : calibration::run_fit(catalog, name, read_samples(arguments.samples));
  if (arguments.out) {
    for (const calibration::WrittenFile& file : fitted.files) {
      const fs::path path = fs::path(*arguments.out) / file.path;
      made_folder(path.parent_path());
      reports::write_output(path, file.text);
    }
  }
  if (arguments.json || arguments.html) {
    if (!fitted.report) {
      throw UsageError(fmt::format("nothing is fitted for '{}', so there is no report to write", name));
    }
    write_report(calibration::to_json(*fitted.report), arguments);
  }
  if (!arguments.quiet && arguments.json != "-") {
    reports::write_stdout(fitted.summary);
    reports::write_stdout(fitted.report ? calibration::to_text(*fitted.report) : "");
  }
  if (!arguments.out && !arguments.json && !arguments.html && !arguments.quiet && !fitted.files.empty()) {
    reports::write_stdout("\n" + fitted.files.back().text);
  }
  return kDone;
}

calibration::ImportHints hints_of(const Arguments& arguments) {
  calibration::ImportHints hints{.collective = arguments.collective};
  if (arguments.ranks) {
    const auto ranks = parse_count(*arguments.ranks);
    if (ranks.index() != 0 || std::get<std::int64_t>(ranks) < 2) {
      throw UsageError("--ranks needs a number of at least 2");
    }
    hints.ranks = std::get<std::int64_t>(ranks);
  }
  return hints;
}

/// Other people's measurements and machines: a table on the terminal, everything as JSON, the samples as CSV.
int import(const Arguments& arguments) {
  check_outputs(arguments);
  const std::vector<std::string> paths(arguments.positional.begin() + 1, arguments.positional.end());
  if (paths.empty()) {
    throw UsageError("expected files to import");
  }
  const auto files = calibration::import_files(paths, hints_of(arguments));
  bool text = !arguments.quiet;
  const auto write = [&](const std::optional<std::string>& path, const std::string& content) {
    if (path) {
      text = text && *path != "-";
      reports::write_output(*path, content);
    }
  };
  write(arguments.json, calibration::to_json(files));
  write(arguments.csv, calibration::to_csv(files));
  if (arguments.out) {
    const fs::path folder = made_folder(*arguments.out);
    reports::write_output(folder / "samples.json", calibration::to_json(files));
    reports::write_output(folder / "samples.csv", calibration::to_csv(files));
  }
  if (text) {
    reports::write_stdout(calibration::to_text(files));
  }
  return kDone;
}

/// Measuring is another program's work: its libraries need not be here, and its code is built for one machine.
int measure(const Arguments& arguments) {
  const fs::path folder = made_folder(arguments.out.value_or("."));
  std::vector<std::string> words{"--out", (folder / (arguments.backend + "-samples.csv")).string()};
  const auto pass_on = [&](const char* option, const std::optional<std::string>& value) {
    if (value) {
      words.insert(words.end(), {option, *value});
    }
  };
  pass_on("--ranks", arguments.ranks);
  pass_on("--fabric", arguments.fabric);
  if (arguments.quick) {
    words.insert(words.end(), {"--size", "quick"});
  }
  if (arguments.resume) {
    words.emplace_back("--resume");
  }
  if (arguments.quiet) {
    words.emplace_back("--quiet");
  }
  return run_sibling("ulysim-calibrate-" + arguments.backend, words);
}

int run(const Arguments& arguments) {
  static const std::vector<std::string> kActions{"fit", "import", "run", "show"};
  const std::string first = arguments.positional.empty() ? "" : arguments.positional.front();
  if (arguments.html && first != "fit") {
    throw UsageError("--html belongs to 'calibrate fit'");
  }
  if (first == "import") {
    return import(arguments);
  }
  if (arguments.csv || arguments.collective) {
    throw UsageError("--csv and --collective belong to 'calibrate import'");
  }
  if (arguments.json && first != "fit") {
    throw UsageError("--json belongs to 'calibrate import' and 'calibrate fit'");
  }
  if (first == "run" && arguments.positional.size() == 1) {
    return measure(arguments);
  }
  if (arguments.ranks) {
    throw UsageError("--ranks belongs to 'calibrate import' and 'calibrate run'");
  }
  if (arguments.positional.size() != 2) {
    throw UsageError("expected an action: run, or import and files, or fit or show and a GPU (see 'ulysim list gpus')");
  }
  const std::string& action = arguments.positional[0];
  const std::string& gpu = arguments.positional[1];
  const fs::path catalog = find_data_directory() / "catalog";
  if (action == "fit") {
    return fit(gpu, catalog, arguments);
  }
  if (action == "show") {
    const spec::Gpu found = spec::Catalog(catalog).load_gpu(gpu, {.file = "command line"});
    reports::write_stdout(calibration::show(cost::find_kernel_profile(catalog, found)));
    return kDone;
  }
  throw UsageError(fmt::format("unknown action '{}'{}", action, did_you_mean(action, kActions)));
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .summary = "measure, read others' measurements, fit kernel profiles to samples, show the one in use",
          .positional = "ACTION",
          .positional_help = "run, import FILE..., fit GPU, or show GPU",
          .takes = "run|import|fit|show",
          .options = {Options::calibration, Options::folder, Options::formats, Options::html, Options::quiet},
          .examples =
              "  ulysim calibrate run --backend host -o measured\n"
              "  ulysim calibrate fit host-core --samples measured/host-samples.csv -o measured\n"
              "  ulysim calibrate import all_reduce.log alltoall.log --csv samples.csv\n"
              "  ulysim calibrate import trace.json topology.xml --json -\n"
              "  ulysim calibrate fit h200-sxm --samples samples.csv --json fit.json --html fit.html\n"
              "  ulysim calibrate show h100-sxm\n"
              "  ulysim calibrate fit h100-sxm -o profiles\n",
          .run = run};
}

}  // namespace ulysim::tools
