// Which question this answers: does a saved result come back whole, and is one that is broken refused with its place?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "reports/fields.h"
#include "reports/result_reader.h"
#include "sim/base/diagnostics.h"
#include "sim/study/study.h"
#include "tests/reports/example.h"
#include "tests/reports/sweep_example.h"
#include "tests/study/lab.h"

namespace ulysim::reports {
namespace {

using testing::HasSubstr;

std::string json(const Report& report) {
  return writer("json").write(report, {}).value();
}

SavedResult saved(const std::string& text) {
  return read_result(config::parse_json(text, "r.json"));
}

/// Every format says the same of what was read as of what was saved.
void expect_comes_back(const Report& report) {
  const SavedResult again = saved(json(report));
  const Report read = report_of(again);
  ASSERT_EQ(read.index(), report.index());
  for (const char* format : {"json", "csv", "table", "html"}) {
    EXPECT_EQ(writer(format).write(read, {}), writer(format).write(report, {})) << format;
  }
}

class EveryRun : public testing::TestWithParam<std::string> {};

TEST_P(EveryRun, ComesBackFromCompare) {
  const results::StudyResult study = study::compare(study::load_run(GetParam()), {});
  expect_comes_back(&study);
}

INSTANTIATE_TEST_SUITE_P(Runs, EveryRun, testing::ValuesIn(study::run_names()), study::test_name);

TEST(Saved, ComesBackFromEveryCommand) {
  const scenario::Scenario scenario = study::load_run("llama3-8b-1m-8xh100");
  const results::StudyResult one = study::run(scenario, {});
  expect_comes_back(&one);
  const results::StudyResult longest = study::maxseq(scenario, {});
  expect_comes_back(&longest);
  expect_comes_back(&longest.model);
  const results::ValidationResult validation = study::validate({}, study::data_folder());
  expect_comes_back(&validation);
  const results::StudyResult by_hand = example();
  expect_comes_back(&by_hand);
  const results::StudyResult longest_by_hand = longest_example();
  expect_comes_back(&longest_by_hand);
}

TEST(Saved, AFitComesBack) {
  const results::FitResult fit{
      .name = "h100-sxm",
      .parameters = {{"gemm efficiency", 0.8324, "", "fit of 207 samples", "published", 0.07884}},
      .covariances = {{"gemm", {"efficiency", "k_overhead"}, {0.8, 145.8}, {1e-4, 2e-3, 2e-3, 4.0}}},
      .groups = {{"gemm >= 10 GFLOP", 203, 0.054, 0.129, 0.31, 0.052, std::nullopt}},
      .residuals = {{"gemm >= 10 GFLOP", "4096x4096x4096", 650.0, 640.5, std::nullopt, "TFLOP/s"}}};
  expect_comes_back(&fit);
}

TEST(Saved, ASweepComesBack) {
  const results::SweepResult sweep = sweep_example();
  expect_comes_back(&sweep);
}

TEST(Saved, WhatALaterProgramAddsIsPassedOver) {
  const results::StudyResult study = example();
  std::string text = json(&study);
  text.insert(text.find("\"scenario\""), "\"added\": {\"x\": [1, null]}, ");
  text.insert(text.find("\"gpu_fit\""), "\"step_time_s_low\": 1.5, ");
  EXPECT_EQ(json(report_of(saved(text))), json(&study));
}

TEST(Saved, WhatAnEarlierProgramDidNotWriteMayBeMissing) {
  const results::StudyResult study = example();
  std::string text = json(&study);
  const std::size_t begin = text.find("\"topology\": {");
  text.erase(begin, text.find("\"winner\"") - begin);
  for (const char* key :
       {"\"topology_links\"", "\"gpu_fit\"", "\"layer_timeline\"", "\"memory_by_kind\"", "\"host_memory\""}) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      text.replace(at + 1, 1, "_");  // another key, which nobody asks for
    }
  }
  const SavedResult again = saved(text);
  const Report read = report_of(again);
  EXPECT_EQ(writer("table").write(read, {}), writer("table").write(&study, {}));
}

/// What the reader says to `text`.
std::string complaints(const std::string& text) {
  std::string out;
  try {
    (void)saved(text);
  } catch (const InputError& error) {
    for (const Diagnostic& found : error.diagnostics()) {
      out += to_string(found) + "\n";
    }
  }
  return out;
}

TEST(Refused, WhatIsNoResultOrALaterVersion) {
  EXPECT_EQ(complaints("{}"),
            "r.json:1:1: error: 'format': this is no result of ulysim: 'format' is not \"ulysim-result\"\n");
  EXPECT_THAT(complaints("[1]"), HasSubstr("expected a mapping"));
  EXPECT_THAT(complaints(R"({"format": "ulysim-result", "version": 2, "kind": "study"})"),
              HasSubstr("r.json:1:40: error: 'version': version 2 of the format is later than this program"));
  EXPECT_THAT(complaints(R"({"format": "ulysim-result", "version": 1, "kind": "studi"})"),
              HasSubstr("did you mean 'study'"));
}

TEST(Refused, WhatWouldBreakAWriter) {
  const results::StudyResult study = example();
  const std::string text = json(&study);
  const auto with = [&](const std::string& key, const std::string& value) {
    std::string changed = text;
    const std::size_t begin = changed.find("\"" + key + "\": ") + key.size() + 4;
    changed.replace(begin, changed.find_first_of(",\n", begin) - begin, value);
    return complaints(changed);
  };
  EXPECT_EQ(with("step_time_s", "100.0"), "");
  EXPECT_THAT(with("step_time_s", "1e300"), HasSubstr("'plans[0].step_time_s': 1e+300 is outside 0 to"));
  EXPECT_THAT(with("step_time_s", "\"100\""), HasSubstr("expected a number"));
  EXPECT_THAT(with("peak_gpu_memory_gib", "-1.0"), HasSubstr("is outside 0 to"));
  EXPECT_THAT(with("gpu_memory_capacity_gib", "0.0"), HasSubstr("a GPU without memory"));
  EXPECT_THAT(with("time_s", "1000.0"), HasSubstr("samples ascend"));
  EXPECT_THAT(with("feasible", "yes"), HasSubstr("syntax error"));
}

TEST(Refused, AStudyWithoutPlans) {
  results::StudyResult study = example();
  study.plans.clear();
  EXPECT_THAT(complaints(json(&study)), HasSubstr("'plans': at least one plan is needed"));
}

TEST(Refused, APlanWithoutALongestSequenceAmongThoseThatHaveOne) {
  results::StudyResult study = longest_example();
  study.plans[1].longest.reset();
  EXPECT_THAT(complaints(json(&study)), HasSubstr("some plans have a longest sequence and some have none"));
  study = longest_example();
  study.plans[0].longest->tokens.reset();
  EXPECT_THAT(complaints(json(&study)), HasSubstr("does not agree with 'feasible' and 'fits'"));
}

TEST(Fields, WhatWasDividedComesBackToTheSameQuotient) {
  std::mt19937_64 random(20261130);
  for (int i = 0; i < 200'000; ++i) {
    const auto picoseconds = static_cast<double>(random() >> (1 + i % 60));
    for (const double divisor : {1e12, 1e9}) {
      const double quotient = picoseconds / divisor;
      ASSERT_EQ(before_division(quotient, divisor) / divisor, quotient) << picoseconds;
    }
  }
}

}  // namespace
}  // namespace ulysim::reports
