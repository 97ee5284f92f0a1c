// Which question this answers: has any byte of what users and their scripts read changed?

#include "tests/reports/golden.h"

#include "reports/writer.h"
#include "tests/reports/example.h"

namespace ulysim::reports {
namespace {

using testing_support::expect_golden;

std::string written(const char* format, const results::StudyResult& study, const Style& style = {}) {
  return writer(format).write(&study, style).value();
}

TEST(Golden, TheTableInUnicode) {
  expect_golden("reports/table_unicode.golden", written("table", example(), {.unicode = true}));
}

TEST(Golden, TheTableInNarrowAsciiWithColour) {
  expect_golden("reports/table_ascii.golden", written("table", example(), {.width = 60, .colour = true}));
}

TEST(Golden, ASinglePlanShowsWhereItsTimeAndMemoryGo) {
  results::StudyResult study = example();
  study.plans.resize(1);
  study.plans[0].figures->total_days = 11.5;
  study.plans[0].figures->total_gpu_hours = 2208.0;
  study.plans[0].figures->total_cost = 5520.0;
  study.scenario.total_tokens = 10'000'000'000;
  expect_golden("reports/table_single.golden", written("table", study, {.unicode = true}));
}

TEST(Golden, LongestSequences) {
  const results::StudyResult study = longest_example();
  expect_golden("reports/longest_unicode.golden", written("table", study, {.unicode = true}));
  expect_golden("reports/longest_ascii.golden", written("table", study, {.width = 60}));
  expect_golden("reports/longest_json.golden", written("json", study));
  expect_golden("reports/longest_csv.golden", written("csv", study));
}

TEST(Golden, NoSequenceIsShortEnough) {
  results::StudyResult study = longest_example();
  study.plans = {study.plans.back()};
  expect_golden("reports/longest_none.golden", written("table", study, {.unicode = true}));
}

TEST(Golden, Json) {
  expect_golden("reports/study_json.golden", written("json", example()));
}

TEST(Golden, Csv) {
  expect_golden("reports/study_csv.golden", written("csv", example()));
}

TEST(Golden, Trace) {
  results::StudyResult study = example();
  study.plans.resize(1);
  study.plans[0].figures->trace = results::Trace{
      .ranks = {
          {.name = "rank 0 (of 8 alike)",
           .members = 8,
           .streams = {"compute", "ulysses_comm"},
           .spans = {{.name = "layer 0 attention", .purpose = "attention", .stream = 0, .end = Instant(1'234'567)},
                     {.name = "all_to_all \"q\"",
                      .purpose = "ulysses",
                      .stream = 1,
                      .begin = Instant(1'234'567),
                      .end = Instant(2'000'499)}},
           .gpu_memory = {{Instant(0), Bytes(kGiB)}}}}};
  expect_golden("reports/study_trace.golden", written("trace", study));
}

TEST(Golden, AModelAndAScoreboard) {
  const results::StudyResult study = example();
  expect_golden("reports/model.golden", writer("table").write(&study.model, {}).value());
  const results::ValidationResult validation{
      .rows = {{.source = "ALST", .id = "ALST-001", .metric = "step_time_s", .measured = 276.0, .predicted = 280.0},
               {.source = "X", .id = "", .metric = "mfu", .measured = 0.4, .note = "pipeline is not simulated"},
               {.source = "X",
                .id = "X-2",
                .metric = "fits",
                .measured = 1.0,
                .predicted = 0.0,
                .note = "does not fit: 92.1 of 80 GiB; \"as printed\", in a note that is longer than a line of the "
                        "terminal is wide, so that it has to be wrapped"}},
      .summary = {{.metric = "step_time_s",
                   .rows = 1,
                   .median_error = 0.0145,
                   .p90_error = 0.0145,
                   .worst_error = 0.0145,
                   .median_ratio = 1.0145},
                  {.metric = "fits", .outcomes = 1, .wrong_outcomes = 1}}};
  expect_golden("reports/validation.golden", writer("table").write(&validation, {}).value());
  expect_golden("reports/validation_json.golden", writer("json").write(&validation, {}).value());
  expect_golden("reports/validation_csv.golden", writer("csv").write(&validation, {}).value());
}

}  // namespace
}  // namespace ulysim::reports
