// Which question this answers: is a result within a page what it is alone, and can nothing in it leave its element?

#include "reports/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/check.h"
#include "sim/config/document.h"
#include "tests/reports/example.h"

namespace ulysim::reports {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kPage = "<html><script type=\"application/json\">@ULYSIM_RESULT@</script></html>\n";

/// What the page got.
std::string inserted(const std::string& html) {
  const std::size_t begin = kPage.find('@');
  return html.substr(begin, html.rfind("</script>") - begin);
}

TEST(Html, HoldsTheResultOnceAndThePageAroundIt) {
  const results::StudyResult study = example();
  const std::string html = fill_page(kPage, &study).value();
  EXPECT_THAT(html, StartsWith("<html><script type=\"application/json\">{\"format\":\"ulysim-result\""));
  EXPECT_THAT(html, EndsWith("}</script></html>\n"));
  EXPECT_THAT(html, Not(HasSubstr("@ULYSIM_RESULT@")));
}

TEST(Html, NoNameEndsTheScriptAndAllReadBack) {
  results::StudyResult study = example();
  const std::string hostile =
      "</script><script>alert(1)</script><!-- & \xE2\x80\xA8 \xE2\x80\xA9 \xE2\x82\xAC @ULYSIM_RESULT@ \"";
  study.scenario.name = hostile;
  study.plans[0].name = hostile;
  const std::string text = inserted(fill_page(kPage, &study).value());
  for (const char* sign : {"<", ">", "&", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    EXPECT_THAT(text, Not(HasSubstr(sign)));
  }
  const config::Node root = config::parse_json(text, "inserted");
  EXPECT_EQ(root.find("scenario")->find("name")->text, hostile);
  EXPECT_EQ(root.find("plans")->items[0].find("name")->text, hostile);
}

TEST(Html, ShowsStudiesScoreboardsAndFitsAndNoBareModel) {
  const results::StudyResult study = example();
  const results::ValidationResult validation;
  const results::FitResult fit;
  EXPECT_TRUE(fill_page(kPage, &study).has_value());
  EXPECT_TRUE(fill_page(kPage, &validation).has_value());
  EXPECT_TRUE(fill_page(kPage, &fit).has_value());
  EXPECT_FALSE(fill_page(kPage, &study.model).has_value());
}

TEST(Html, APageWithoutAPlaceOrWithTwoIsOurBug) {
  const results::ValidationResult validation;
  EXPECT_THROW((void)fill_page("<html></html>", &validation), InternalError);
  EXPECT_THROW((void)fill_page("@ULYSIM_RESULT@ @ULYSIM_RESULT@", &validation), InternalError);
}

TEST(Html, TheWriterFillsTheBuiltPageWhereThereIsOne) {
  const results::StudyResult study = example();
  const auto html = writer("html").write(&study, {});
  ASSERT_EQ(html.has_value(), !report_page().empty());
  if (html) {
    EXPECT_EQ(*html, fill_page(report_page(), &study));
  }
}

}  // namespace
}  // namespace ulysim::reports
