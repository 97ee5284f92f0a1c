#include <filesystem>
#include <vector>

#include "sim/study/study.h"
#include "tools/command.h"
#include "tools/data_folder.h"
#include "tools/emit.h"
#include "tools/progress.h"

namespace ulysim::tools {
namespace {

int run(const Arguments& arguments) {
  check_outputs(arguments);
  const std::vector<std::filesystem::path> paths(arguments.positional.begin(), arguments.positional.end());
  const results::ValidationResult validation = [&] {
    Progress progress(arguments, "rows");
    return study::validate(paths, find_data_directory(), progress.teller());
  }();
  emit(&validation, arguments);
  return kDone;
}

}  // namespace

Command validate_command() {
  return {.name = "validate",
          .summary = "published (or your own) measurements against prediction: a scoreboard",
          .positional = "PATH",
          .positional_help = "files or folders of measurements (default: the shipped ones)",
          .options = {Options::folder, Options::formats, Options::html, Options::quiet},
          .examples =
              "  ulysim validate\n"
              "  ulysim validate --html scoreboard.html\n"
              "  ulysim validate my-measurements.yaml --csv scores.csv\n",
          .run = run};
}

}  // namespace ulysim::tools
