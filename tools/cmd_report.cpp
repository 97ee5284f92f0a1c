#include "reports/result_reader.h"
#include "tools/command.h"
#include "tools/emit.h"
#include "tools/study_input.h"

namespace ulysim::tools {
namespace {

int run(const Arguments& arguments) {
  check_outputs(arguments);
  const reports::SavedResult saved =
      reports::read_result(config::load_json_file(only_positional(arguments, "saved result (RESULT.json)")));
  emit(reports::report_of(saved), arguments);
  return kDone;
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .summary = "a saved result again, in any format, without simulating",
          .positional = "RESULT.json",
          .positional_help = "what --json of run, compare, maxseq, sweep, validate, calibrate fit or model wrote",
          .options = {Options::folder, Options::formats, Options::html, Options::quiet},
          .examples =
              "  ulysim report results/result.json\n"
              "  ulysim report results/result.json --html report.html --csv plans.csv\n",
          .run = run};
}

}  // namespace ulysim::tools
