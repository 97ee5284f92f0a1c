// Which question this answers: can what we write be read by those it is for, whatever names users choose?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "reports/text.h"
#include "reports/verdict.h"
#include "reports/writer.h"
#include "sim/config/document.h"
#include "tests/reports/example.h"

namespace ulysim::reports {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string written(const char* format, const results::StudyResult& study) {
  return writer(format).write(&study, {}).value();
}

TEST(Verdict, NamesTheWinnerItsFiguresAndWhereTheNextLoses) {
  EXPECT_EQ(
      verdict(example()),
      "ulysses=8 wins: 100 s a step, 1,000 tokens/s/GPU, MFU 50.0%; 1.25× as fast as ring=8, 25.0 s less in exposed "
      "communication");
}

TEST(Verdict, ADifferentGlobalBatchIsComparedByTokens) {
  results::StudyResult study = example();
  // Ring takes 1.25 times as long for twice the tokens: now it wins.
  study.plans[1].figures->tokens_per_step *= 2.0;
  study.plans[1].figures->tokens_per_s_per_gpu *= 2.0;
  EXPECT_THAT(verdict(study), StartsWith("ring=8 wins: 125 s a step, 1,600 tokens/s/GPU"));
}

TEST(Verdict, CallsAHairsBreadthNoVictory) {
  results::StudyResult study = example();
  study.plans[1].figures->tokens_per_s_per_gpu = 996.0;
  EXPECT_THAT(verdict(study), testing::EndsWith("ring=8 is level with it (within 0.5%)"));
  study.plans[1].figures->tokens_per_s_per_gpu = 995.0;
  EXPECT_THAT(verdict(study), HasSubstr("1.01× as fast as ring=8")) << "1000 / 995 = 1.00503";
}

TEST(Verdict, SaysWhatIsNearestWhenNothingFits) {
  results::StudyResult study = example();
  study.plans.erase(study.plans.begin(), study.plans.begin() + 2);
  EXPECT_EQ(verdict(study), "no plan fits; tensor=8 is nearest: does not fit: 92 of 80 GiB; logits 90 GiB");
  study.plans.erase(study.plans.begin());
  EXPECT_EQ(verdict(study), "ulysses=7 cannot run: 32 heads do not divide by 7");
}

TEST(Json, IsReadByOurOwnReaderAndStartsWithItsFormat) {
  const std::string text = written("json", example());
  EXPECT_THAT(text, StartsWith("{\n  \"format\": \"ulysim-result\",\n  \"version\": 1,\n"));
  const config::Node root = config::parse_json(text, "result.json");
  const config::Node& plans = *root.find("plans");
  ASSERT_EQ(plans.items.size(), 4U);
  EXPECT_EQ(plans.items[0].find("step_time_s")->text, "100.0");
  EXPECT_EQ(plans.items[2].find("fits")->text, "false");
  EXPECT_NE(plans.items[2].find("step_time_s")->kind, config::Node::Kind::null)
      << "figures stand although it does not fit";
  EXPECT_EQ(plans.items[3].find("step_time_s")->kind, config::Node::Kind::null) << "infeasible: null";
  EXPECT_EQ(plans.items[3].find("feasible")->text, "false");
}

TEST(Json, ANumberThatIsNoneIsOurBug) {
  results::StudyResult study = example();
  study.plans[0].figures->mfu = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW((void)written("json", study), InternalError);
}

TEST(Json, TheSameReportGivesTheSameBytes) {
  EXPECT_EQ(written("json", example()), written("json", example()));
}

/// Fields of one RFC 4180 record.
std::vector<std::string> fields(const std::string& record) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (std::size_t i = 0; i < record.size(); ++i) {
    if (record[i] == '"' && quoted && i + 1 < record.size() && record[i + 1] == '"') {
      out.back() += '"';
      ++i;
    } else if (record[i] == '"') {
      quoted = !quoted;
    } else if (record[i] == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += record[i];
    }
  }
  return out;
}

TEST(Csv, EveryRecordHasTheFieldsOfTheHeader) {
  results::StudyResult study = example();
  study.plans[0].name = "a \"quoted\", name";
  const std::string text = written("csv", study);
  std::vector<std::vector<std::string>> records;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find("\r\n", at);
    ASSERT_NE(end, std::string::npos) << "every record ends in CRLF";
    records.push_back(fields(text.substr(at, end - at)));
    at = end + 2;
  }
  ASSERT_EQ(records.size(), 5U);
  for (const auto& record : records) {
    EXPECT_EQ(record.size(), records.front().size());
  }
  EXPECT_EQ(records[1][5], "a \"quoted\", name");
}

TEST(Csv, ANameIsNeverAFormula) {
  for (const char* name : {"=1+1", "+1", "-1", "@SUM(A1)", "\tx"}) {
    results::StudyResult study = example();
    study.plans[0].name = name;
    EXPECT_THAT(written("csv", study), HasSubstr(std::string(",'") + name)) << name;
  }
}

TEST(Trace, IsJsonWhateverAnOpIsCalled) {
  results::StudyResult study = example();
  study.plans[0].name = "quote \" backslash \\ newline \n end";
  study.plans[0].figures->trace =
      results::Trace{.ranks = {{.name = "rank 0", .streams = {"compute"}, .spans = {{.name = "</script>\x01"}}}}};
  const config::Node root = config::parse_json(written("trace", study), "trace.json");
  EXPECT_EQ(root.find("traceEvents")->items.size(), 5U) << "two names, two places and one op";
}

TEST(Trace, OpsThatFollowEachOtherNeverOverlap) {
  // 1.5 ns and then to 2.4 ns: each instant rounded for itself, the first op ends where the second begins.
  results::StudyResult study = example();
  study.plans[0].figures->trace =
      results::Trace{.ranks = {{.streams = {"s"},
                                .spans = {{.name = "a", .end = Instant(1'500)},
                                          {.name = "b", .begin = Instant(1'500), .end = Instant(2'400)}}}}};
  const std::string text = written("trace", study);
  EXPECT_THAT(text, HasSubstr(R"("ts":0.000,"dur":0.002)"));
  EXPECT_THAT(text, HasSubstr(R"("ts":0.002,"dur":0.000)"));
}

TEST(Table, ATerminalEscapeInANameIsHarmless) {
  results::StudyResult study = example();
  study.plans[0].name = "\x1b[31mred\x1b]0;title\x07";
  study.plans[0].figures->bottleneck =
      "\xc2\x9b"
      "5A";
  EXPECT_THAT(written("table", study), Not(HasSubstr("\x1b")));
  EXPECT_THAT(writer("table").write(&study, {.unicode = true}).value(), Not(HasSubstr("\xc2\x9b")));
}

TEST(Table, FitsTheTerminalHoweverLongANameIs) {
  results::StudyResult study = example();
  study.plans[0].name = std::string(90, 'n');
  const std::string text = writer("table").write(&study, {.width = 80, .unicode = true}).value();
  const std::string table = text.substr(text.find("plan "), text.find("\nWhat binds") - text.find("plan "));
  for (std::size_t at = 0; at < table.size(); at = table.find('\n', at) + 1) {
    EXPECT_LE(display_width(table.substr(at, table.find('\n', at) - at)), 80U);
  }
}

TEST(Table, WithoutUtf8EveryByteIsAscii) {
  for (const char c : written("table", example())) {
    ASSERT_LT(static_cast<unsigned char>(c), 0x80);
  }
}

TEST(Text, WrapsAtSpacesAndIndentsWhatFollows) {
  EXPECT_EQ(wrapped("one two three", 8, 2), "one two\n  three\n");
  EXPECT_EQ(wrapped("  a bb", 4, 4), "  a\n    bb\n");
  EXPECT_EQ(wrapped("a unbreakable", 6, 2), "a\n  unbr\n  eaka\n  ble\n") << "a long word goes on in the next line";
}

TEST(Text, ANameWithNothingToSayStandsAlone) {
  EXPECT_EQ(item("  name", "text", 8, 40), "  name  text\n");
  EXPECT_EQ(item("  name", "", 8, 40), "  name\n");
  EXPECT_EQ(item("  name", "  ", 8, 40), "  name\n");
}

TEST(Text, CountsAndCutsByCharacterNotByByte) {
  EXPECT_EQ(display_width("a×b"), 3U);
  EXPECT_EQ(shortened("a×bcd", 3), "a×…");
}

}  // namespace
}  // namespace ulysim::reports
