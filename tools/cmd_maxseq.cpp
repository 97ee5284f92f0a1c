#include <algorithm>

#include "sim/study/study.h"
#include "tools/command.h"
#include "tools/emit.h"
#include "tools/progress.h"
#include "tools/study_input.h"

namespace ulysim::tools {
namespace {

/// Where the search begins when the command line does not say.
constexpr const char* kStart = "128Ki";

scenario::Scenario load(Arguments arguments) {
  if (arguments.positional.empty() && !arguments.seq) {
    arguments.seq = kStart;
  }
  return load_study(arguments);
}

int run(const Arguments& arguments) {
  check_outputs(arguments);
  const bool trace = arguments.trace.has_value();
  const scenario::Scenario scenario = load(arguments);
  const results::StudyResult study = [&] {
    Progress progress(arguments, "plans");
    return study::maxseq(
        scenario, {.detail = trace ? study::Detail::trace : study::Detail::figures, .on_progress = progress.teller()});
  }();
  emit(&study, arguments);
  const bool any = std::any_of(study.plans.begin(), study.plans.end(),
                               [](const auto& plan) { return plan.longest && plan.longest->tokens; });
  return any ? kDone : kCannotRun;
}

}  // namespace

Command maxseq_command() {
  return {.name = "maxseq",
          .summary = "the longest sequence that each plan trains, what stops it, and what would reach further",
          .positional = "SCENARIO",
          .positional_help = "YAML file of a study; its sequence_length is only where the search begins",
          .options = {Options::study, Options::folder, Options::formats, Options::html, Options::trace, Options::quiet},
          .examples =
              "  ulysim maxseq scenarios/runs/llama3-8b-1m-8xh100.yaml\n"
              "  ulysim maxseq study.yaml --html longest.html\n"
              "  ulysim maxseq study.yaml --set training.checkpoint_offload=cpu --json -\n"
              "  ulysim maxseq --model llama-3.1-8b --node dgx-h100 --plan ulysses=8 --plan ring=8\n",
          .run = run};
}

}  // namespace ulysim::tools
