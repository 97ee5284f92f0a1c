#include <filesystem>

#include "sim/base/diagnostics.h"
#include "sim/scenario/resources.h"
#include "sim/study/study.h"
#include "sim/workload/hf_config.h"
#include "tools/command.h"
#include "tools/data_folder.h"
#include "tools/emit.h"
#include "tools/study_input.h"

namespace ulysim::tools {
namespace {

int run(const Arguments& arguments) {
  check_outputs(arguments);
  const std::string& name = only_positional(arguments, "model (a name or a config.json)");
  Diagnostics diagnostics;
  const auto file = scenario::find_model_file(name, {.file = "command line"},
                                              {.models = find_data_directory() / "scenarios" / "models"}, diagnostics);
  diagnostics.throw_if_any();
  const results::ModelInfo info = study::model_info(workload::load_hf_config(*file));
  emit(&info, arguments);
  return kDone;
}

}  // namespace

Command model_command() {
  return {.name = "model",
          .summary = "what was read from a model, its parameters, its legal Ulysses degrees",
          .positional = "MODEL",
          .positional_help = "a name that 'list models' shows, or a path to a Hugging Face config.json",
          .takes = "MODEL",
          .options = {Options::folder, Options::formats, Options::quiet},
          .examples =
              "  ulysim model llama-3.1-8b\n"
              "  ulysim model ./my-model/config.json --json -\n",
          .run = run};
}

}  // namespace ulysim::tools
