#include <fmt/format.h>

#include <filesystem>

#include "calibration/commands.h"
#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/load.h"
#include "reports/output.h"
#include "sim/base/check.h"
#include "sim/base/named.h"
#include "tools/command.h"
#include "tools/data_folder.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;

void fit(const std::string& gpu, const fs::path& catalog, const Arguments& arguments) {
  const calibration::FitOutput fitted = calibration::run_fit(catalog, gpu);
  if (arguments.out) {
    const fs::path folder = *arguments.out;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
      throw WorldError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
    }
    reports::write_output(folder / (fitted.profile_name + ".yaml"), fitted.profile_yaml_text);
  }
  if (!arguments.quiet) {
    reports::write_stdout(fitted.report_text);
  }
  if (!arguments.out) {
    reports::write_stdout(fitted.profile_yaml_text);
  }
}

int run(const Arguments& arguments) {
  static const std::vector<std::string> kActions{"fit", "show"};
  if (arguments.positional.size() != 2) {
    throw UsageError("expected an action (fit or show) and a GPU (see 'ulysim list gpus')");
  }
  const std::string& action = arguments.positional[0];
  const std::string& gpu = arguments.positional[1];
  const fs::path catalog = find_data_directory() / "catalog";
  if (action == "fit") {
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
          .summary = "fit a GPU's kernel profile to samples, or show the one in use",
          .positional = "ACTION",
          .positional_help = "fit GPU, or show GPU",
          .options = {Options::folder, Options::quiet},
          .examples =
              "  ulysim calibrate show h100-sxm\n"
              "  ulysim calibrate fit h100-sxm -o profiles\n",
          .run = run};
}

}  // namespace ulysim::tools
