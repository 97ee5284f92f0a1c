// Which question this answers: is the text of a scenario in a result the scenario again?

#include <gtest/gtest.h>

#include "tests/scenario/small.h"

namespace ulysim::scenario {
namespace {

void expect_text_is(const Scenario& first) {
  SCOPED_TRACE(first.text);
  const Scenario second = parsed(first.text);
  EXPECT_EQ(describe(second), describe(first));
  EXPECT_EQ(second.text, first.text);
  ASSERT_EQ(second.plans.size(), first.plans.size());
  for (std::size_t i = 0; i < first.plans.size(); ++i) {
    const strategies::Plan& a = first.plans[i].plan;
    const strategies::Plan& b = second.plans[i].plan;
    ASSERT_EQ(a.documents == nullptr, b.documents == nullptr);
    EXPECT_TRUE(a.documents == nullptr || *a.documents == *b.documents);
    EXPECT_EQ(a.lengths, b.lengths);
  }
}

TEST(Text, OfEveryShippedScenarioLoadsToTheSame) {
  int seen = 0;
  for (const auto& file : std::filesystem::directory_iterator(data_folder() / "scenarios" / "runs")) {
    expect_text_is(load_scenario(file.path(), data_folder(), {}));
    ++seen;
  }
  EXPECT_GT(seen, 10);
}

TEST(Text, HoldsWhatTheCommandLineChanged) {
  const Scenario s =
      parsed(study("{sequence_length: {distribution: {kind: lognormal, mean: 4000, pack_to: 65536}}}", "[{}]"),
             {.overrides = {{.text = "training.zero=1"}, {.text = "plans.1={ulysses: 8}"}}});
  EXPECT_EQ(s.plans.size(), 2U);
  EXPECT_NE(s.text.find("zero: 1"), std::string::npos);
  expect_text_is(s);
}

TEST(Text, KeepsANameThatLooksLikeYaml) {
  const Scenario s = parsed("scenario: \"a: {b}, # c\"\n" + study("{sequence_length: 16Ki}", "[{name: \"- x: [\"}]"));
  EXPECT_EQ(s.name, "a: {b}, # c");
  expect_text_is(s);
}

TEST(Text, HasTheNameThatTheFileGave) {
  EXPECT_EQ(parsed(study("{sequence_length: 16Ki}", "[{}]")).text.substr(0, 19), "scenario: \"s.yaml\"\n");
}

}  // namespace
}  // namespace ulysim::scenario
