#include "sim/base/named.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ulysim {
namespace {

const std::vector<std::string>& degrees() {
  static const std::vector<std::string> kNames{"tensor", "ulysses", "ring", "data", "pipeline", "expert"};
  return kNames;
}

TEST(Nearest, OneSlipOfTheFingersIsUnderstood) {
  EXPECT_EQ(nearest("ulyses", degrees()), "ulysses") << "a letter left out";
  EXPECT_EQ(nearest("ulyssses", degrees()), "ulysses") << "a letter too many";
  EXPECT_EQ(nearest("tenzor", degrees()), "tensor") << "a wrong letter";
  EXPECT_EQ(nearest("rnig", degrees()), "ring") << "two letters swapped count once";
}

TEST(Nearest, AThirdOfTheLongerNameIsTheLimit) {
  // six letters: two edits are a third, three are more
  EXPECT_EQ(nearest("tenXXr", degrees()), "tensor");
  EXPECT_EQ(nearest("teXXXr", degrees()), "");
}

TEST(Nearest, NothingInCommonIsNoSuggestion) {
  EXPECT_EQ(nearest("x", std::vector<std::string>{"y"}), "");
}

TEST(Nearest, TiesGoToTheFirst) {
  EXPECT_EQ(nearest("cat", std::vector<std::string>{"bat", "rat"}), "bat");
}

TEST(DidYouMean, SuggestsOrListsWhatIsKnown) {
  EXPECT_EQ(did_you_mean("rinq", degrees()), "; did you mean 'ring'?");
  EXPECT_EQ(did_you_mean("zebra", degrees()), "; known: tensor, ulysses, ring, data, pipeline, expert");
  EXPECT_EQ(did_you_mean("zebra", std::vector<std::string>{}), "");
}

TEST(DidYouMean, ListsAtMostTwelve) {
  EXPECT_EQ(did_you_mean("zebra", std::vector<std::string>(12, "a")), "; known: a, a, a, a, a, a, a, a, a, a, a, a");
  EXPECT_EQ(did_you_mean("zebra", std::vector<std::string>(13, "a")), "; known: a, a, a, a, a, a, a, a, a, a, a, a, …");
}

}  // namespace
}  // namespace ulysim
