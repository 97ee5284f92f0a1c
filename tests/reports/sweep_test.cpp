// Which question this answers: does a sweep say where each plan wins, and does what is written read back unchanged?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/result_reader.h"
#include "reports/writer.h"
#include "sim/base/diagnostics.h"
#include "tests/reports/sweep_example.h"

namespace ulysim::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string written(const char* format, const results::SweepResult& sweep, const Style& style = {}) {
  return writer(format).write(&sweep, style).value();
}

TEST(SweepText, SaysWhoWinsWhereAndWhoTakesOver) {
  const std::string text = written("table", sweep_example(), {.width = 120});
  EXPECT_THAT(text, HasSubstr("ring=all wins at 66.7%, ulysses=all wins at 16.7%, nothing fits at 16.7%")) << "of 6";
  EXPECT_THAT(text, HasSubstr("  1  UR.\n  2  RRR\n")) << "the map";
  EXPECT_THAT(text, HasSubstr("cluster.nodes 1: ulysses=all from 131,072, ring=all from 1,048,576, nothing fits from"));
}

TEST(SweepText, MarksPlansByLettersThatTellThemApart) {
  results::SweepResult sweep = sweep_example();
  sweep.plans = {"ring=8", "ring=all"};
  EXPECT_THAT(written("table", sweep), HasSubstr("  R ring=8, I ring=all, . no plan fits\n"));
  EXPECT_THAT(written("table", sweep), HasSubstr("  1  RI.\n"));
}

TEST(SweepText, ShowsWhatWasNotSimulated) {
  results::SweepResult sweep = sweep_example();
  sweep.points.pop_back();
  EXPECT_THAT(written("table", sweep), HasSubstr("  2  RR?\n"));
  sweep.points.clear();
  EXPECT_THAT(written("table", sweep), HasSubstr("no plan fits at any point"));
}

TEST(SweepText, ThinsALongAxisToTheWidth) {
  results::SweepResult sweep{.name = "long", .axes = {{"training.sequence_length", {}}}, .plans = {"ulysses=all"}};
  for (std::size_t i = 0; i < 500; ++i) {
    sweep.axes[0].values.push_back(std::to_string(i + 1));
    sweep.points.push_back({.at = {i}, .plans = {{.name = "u", .figures = results::SweepFigures{}}}});
  }
  const std::string text = written("table", sweep, {.width = 50});
  EXPECT_THAT(text, HasSubstr('\n' + std::string(2, ' ') + std::string(48, 'U') + '\n'));
  EXPECT_THAT(text, HasSubstr("1 to 500 (48 of\n  500 values)")) << "both ends are shown";
}

TEST(SweepText, HasAMapForEachValueOfTheOuterAxes) {
  results::SweepResult sweep = sweep_example();
  sweep.axes.insert(sweep.axes.begin(), {"model", {"a", "b"}});
  for (results::SweepPoint& point : sweep.points) {
    point.at.insert(point.at.begin(), 1);
  }
  const std::string text = written("table", sweep);
  EXPECT_THAT(text, HasSubstr("model a: down: cluster.nodes"));
  EXPECT_THAT(text, HasSubstr("model b, cluster.nodes 1: ulysses=all from 131,072"));
}

TEST(SweepJson, ReadsBackToTheSameBytes) {
  results::SweepResult sweep = sweep_example();
  sweep.points[0].plans[0].figures->step_time_s = 0.1 + 0.2;  // 0.30000000000000004
  sweep.points[0].plans[0].figures->mfu = 1.0 / 3.0;
  sweep.points[0].plans[0].reason = "\"quoted\", <b> \n\t\\ é";
  const std::string text = written("json", sweep);
  EXPECT_THAT(text,
              testing::StartsWith("{\n  \"format\": \"ulysim-result\",\n  \"version\": 1,\n  \"kind\": \"sweep\""));
  const SavedResult again = read_result(config::parse_json(text, "result.json"));
  EXPECT_EQ(writer("json").write(report_of(again), {}), text);
  EXPECT_EQ(writer("csv").write(report_of(again), {}), written("csv", sweep));
  EXPECT_EQ(writer("table").write(report_of(again), {}), written("table", sweep));
}

TEST(SweepJson, AResultThatIsNoneIsRefused) {
  const auto refused = [](std::string text, const std::string& what, const std::string& with) {
    text.replace(text.find(what), what.size(), with);
    EXPECT_THROW((void)read_result(config::parse_json(text, "r.json")), InputError) << with;
  };
  const std::string text = written("json", sweep_example());
  refused(text, "\"at\":[0,0]", "\"at\":[0]");
  refused(text, "\"values\":[\"1\",\"2\"]", "\"values\":[]");
  refused(text, "\"at\":[0,0]", "\"at\":[0,3]");
  refused(text, "\"at\":[0,0]", "\"at\":[0,-1]");
  refused(text, "\"fit\":\"yes\"", "\"fit\":\"perhaps\"");
  refused(text, "\"feasible\":true", "\"feasible\":7");
  refused(text, "\"mfu\":0.5", "\"mfu\":\"high\"");
}

TEST(SweepCsv, HasARowForEachPlanAtEachPointWithTheUnitsInTheNames) {
  const std::string text = written("csv", sweep_example());
  EXPECT_THAT(text, testing::StartsWith(
                        "sweep,cluster.nodes,training.sequence_length,plan,resolved_plan,wins,feasible,fit,step_time_s,"
                        "tokens_per_s_per_gpu,mfu,peak_gpu_memory_gib,peak_host_memory_gib_per_node,"
                        "exposed_communication_s,bottleneck,reason\r\n"
                        "example,1,131072,ulysses=all,ulysses=8,true,true,yes,65.536,2000,0.5,40.25,512,0.5,"
                        "attention kernels (61% of the step),\r\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 13) << "a head and 6 points of 2 plans";
  EXPECT_THAT(text, HasSubstr("example,2,131072,ulysses=all,ulysses=16,false,false,,,,,,,,,28 heads"));
}

TEST(SweepCsv, NoTextOfAFileIsAFormulaOrBreaksARow) {
  results::SweepResult sweep = sweep_example();
  sweep.name = "=HYPERLINK(\"http://x\")";
  sweep.axes[0] = {"+axis", {"-1+1", "@SUM(A1)"}};
  sweep.plans[0] = "\tplan";
  sweep.plans[1] = "\r=1";
  sweep.points[0].plans[0].reason = "-2,\"x\"\r\n=3";
  const std::string text = written("csv", sweep);
  EXPECT_THAT(text, HasSubstr("\"'=HYPERLINK(\"\"http://x\"\")\",'-1+1,"));
  EXPECT_THAT(text, HasSubstr("sweep,'+axis,"));
  EXPECT_THAT(text, HasSubstr(",'@SUM(A1),131072,'\tplan,"));
  EXPECT_THAT(text, HasSubstr(",\"'\r=1\","));
  EXPECT_THAT(text, HasSubstr(",\"'-2,\"\"x\"\"\r\n=3\"\r\n"));
}

}  // namespace
}  // namespace ulysim::reports
