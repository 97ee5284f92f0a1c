#include <fmt/format.h>

#include <filesystem>

#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/load.h"
#include "reports/output.h"
#include "sim/base/diagnostics.h"
#include "sim/config/document.h"
#include "sim/scenario/grid.h"
#include "sim/scenario/resources.h"
#include "sim/scenario/scenario.h"
#include "sim/workload/hf_config.h"
#include "tools/command.h"
#include "tools/data_folder.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;

/// What a file is follows from where it lies (catalogue folders) or from its name (a model's config.json); of the
/// others one with axes is a sweep.
void check_file(const fs::path& file, const fs::path& data) {
  const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  const spec::Catalog around(folder.parent_path());
  const std::string name = file.stem().string();
  const std::string kind = folder.filename().string();
  if (file.extension() == ".json") {
    (void)workload::load_hf_config(file);
  } else if (kind == "gpus") {
    (void)around.load_gpu(name, {.file = file.string()});
  } else if (kind == "nodes") {
    (void)around.load_node(name, {.file = file.string()});
  } else if (kind == "frameworks") {
    (void)around.load_framework(name, {.file = file.string()});
  } else if (kind == "kernels") {
    (void)cost::load_kernel_profile(file);
  } else if (config::load_file(file).find("axes") != nullptr) {
    (void)scenario::load_grid(file, data, {});
  } else {
    (void)scenario::load_scenario(file, data, {});
  }
}

int run(const Arguments& arguments) {
  if (arguments.positional.empty()) {
    throw UsageError("expected at least one FILE");
  }
  const fs::path data = find_data_directory();
  Diagnostics diagnostics;
  for (const std::string& file : arguments.positional) {
    try {
      check_file(file, data);
      reports::write_stdout(file + ": ok\n");
    } catch (const InputError& error) {
      scenario::add_all(error, diagnostics);
    }
  }
  diagnostics.throw_if_any();
  return kDone;
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .summary = "read files and print every mistake: scenarios, sweeps, a model's config.json, catalogue files",
          .positional = "FILE",
          .positional_help = "what to read",
          .options = {},
          .examples =
              "  ulysim check study.yaml\n"
              "  ulysim check hw_models/catalog/gpus/*.yaml\n",
          .run = run};
}

}  // namespace ulysim::tools
