#include <fmt/format.h>

#include <filesystem>

#include "calibration/commands.h"
#include "calibration/fit_cluster.h"
#include "calibration/import/import.h"
#include "calibration/write_profile.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/load.h"
#include "reports/output.h"
#include "sim/base/check.h"
#include "sim/base/named.h"
#include "sim/base/parse_quantity.h"
#include "tools/command.h"
#include "tools/data_folder.h"
#include "tools/emit.h"
#include "tools/sibling.h"

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

void fit(const std::string& gpu, const fs::path& catalog, const Arguments& arguments) {
  const calibration::FitOutput fitted = calibration::run_fit(catalog, gpu);
  if (arguments.out) {
    reports::write_output(made_folder(*arguments.out) / (fitted.profile_name + ".yaml"), fitted.profile_yaml_text);
  }
  if (!arguments.quiet) {
    reports::write_stdout(fitted.report_text);
  }
  if (!arguments.out) {
    reports::write_stdout(fitted.profile_yaml_text);
  }
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

/// From a samples file of one's own: a GPU, a node and a profile, laid out as the catalogue is.
void fit_samples(const std::string& name, const Arguments& arguments) {
  const auto samples = calibration::load_probe_samples(*arguments.samples);
  const calibration::ClusterFit fitted = calibration::fit_cluster(samples, name);
  if (!arguments.quiet) {
    reports::write_stdout(calibration::to_text(calibration::compare_layers(samples, fitted)));
  }
  if (!arguments.out) {
    reports::write_stdout(calibration::show(fitted.profile));
    return;
  }
  const fs::path folder = *arguments.out;
  const std::string file = name + ".yaml";
  reports::write_output(made_folder(folder / "gpus") / file, calibration::write_gpu(fitted.gpu));
  reports::write_output(made_folder(folder / "nodes") / file, calibration::write_node(fitted.node));
  reports::write_output(made_folder(folder / "kernels") / file, calibration::write_profile(fitted.profile));
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
  if (first == "import") {
    return import(arguments);
  }
  if (arguments.json || arguments.csv || arguments.collective) {
    throw UsageError("--json, --csv and --collective belong to 'calibrate import'");
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
  if (action == "fit" && arguments.samples) {
    fit_samples(gpu, arguments);
  } else if (action == "fit") {
    fit(gpu, catalog, arguments);
  } else if (action == "show") {
    const spec::Gpu found = spec::Catalog(catalog).load_gpu(gpu, {.file = "command line"});
    reports::write_stdout(calibration::show(cost::find_kernel_profile(catalog, found)));
  } else {
    throw UsageError(fmt::format("unknown action '{}'{}", action, did_you_mean(action, kActions)));
  }
  return kDone;
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .summary = "measure, read others' measurements, fit kernel profiles to samples, show the one in use",
          .positional = "ACTION",
          .positional_help = "run, import FILE..., fit GPU, or show GPU",
          .takes = "run|import|fit|show",
          .options = {Options::calibration, Options::folder, Options::formats, Options::quiet},
          .examples =
              "  ulysim calibrate run --backend host -o measured\n"
              "  ulysim calibrate fit host-core --samples measured/host-samples.csv -o measured\n"
              "  ulysim calibrate import all_reduce.log alltoall.log --csv samples.csv\n"
              "  ulysim calibrate import trace.json topology.xml --json -\n"
              "  ulysim calibrate show h100-sxm\n"
              "  ulysim calibrate fit h100-sxm -o profiles\n",
          .run = run};
}

}  // namespace ulysim::tools
