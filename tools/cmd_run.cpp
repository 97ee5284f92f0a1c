#include "sim/study/study.h"
#include "tools/command.h"
#include "tools/emit.h"
#include "tools/study_input.h"

namespace ulysim::tools {
namespace {

int run(const Arguments& arguments) {
  check_outputs(arguments);
  const bool trace = arguments.trace || arguments.out;
  const results::StudyResult study =
      study::run(load_study(arguments), {.detail = trace ? study::Detail::trace : study::Detail::figures});
  emit(&study, arguments);
  return study.plans.front().fits() ? kDone : kCannotRun;
}

}  // namespace

Command run_command() {
  return {.name = "run",
          .summary = "the first plan only: step time, where it goes, memory, timeline",
          .positional = "SCENARIO",
          .positional_help = "YAML file of a study",
          .options = {Options::study, Options::folder, Options::formats, Options::html, Options::trace, Options::quiet},
          .examples =
              "  ulysim run scenarios/runs/llama3-8b-1m-8xh100.yaml --trace step.json\n"
              "  ulysim run study.yaml --html report.html\n"
              "  ulysim run --model llama-3.1-8b --node dgx-h100 --seq 256Ki --plan ulysses=8\n",
          .run = run};
}

}  // namespace ulysim::tools
