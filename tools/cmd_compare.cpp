#include "sim/study/study.h"
#include "tools/command.h"
#include "tools/emit.h"
#include "tools/progress.h"
#include "tools/study_input.h"

namespace ulysim::tools {
namespace {

int run(const Arguments& arguments) {
  check_outputs(arguments);
  const bool trace = arguments.trace.has_value();
  const scenario::Scenario scenario = load_study(arguments);
  const results::StudyResult study = [&] {
    Progress progress(arguments, "plans");
    return study::compare(
        scenario, {.detail = trace ? study::Detail::trace : study::Detail::figures, .on_progress = progress.teller()});
  }();
  emit(&study, arguments);
  return kDone;
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .summary = "all plans of a scenario side by side: the main job",
          .positional = "SCENARIO",
          .positional_help = "YAML file of a study",
          .options = {Options::study, Options::folder, Options::formats, Options::html, Options::trace, Options::quiet},
          .examples =
              "  ulysim compare scenarios/runs/llama3-8b-1m-8xh100.yaml -o results\n"
              "  ulysim compare study.yaml --html report.html\n"
              "  ulysim compare study.yaml --set training.sequence_length=2Mi --json -\n"
              "  ulysim compare --model qwen2.5-7b --node dgx-h100 --seq 128Ki --plan ulysses=4,ring=2\n",
          .run = run};
}

}  // namespace ulysim::tools
