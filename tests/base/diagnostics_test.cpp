#include "sim/base/diagnostics.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/base/check.h"

namespace ulysim {
namespace {

Location at(std::string file, int line, int column) {
  return {.file = std::move(file), .line = line, .column = column};
}

TEST(Diagnostics, TextNamesThePlaceAsFarAsItIsKnown) {
  EXPECT_EQ(to_string({.where = at("a.yaml", 3, 7), .message = "wrong"}), "a.yaml:3:7: error: wrong");
  EXPECT_EQ(to_string({.where = at("a.yaml", 0, 0), .message = "wrong"}), "a.yaml: error: wrong");
  EXPECT_EQ(to_string({.where = {}, .message = "wrong"}), "error: wrong");
}

TEST(Diagnostics, NothingCollectedThrowsNothing) {
  const Diagnostics none;
  EXPECT_TRUE(none.empty());
  EXPECT_NO_THROW(none.throw_if_any());
}

TEST(Diagnostics, AllMistakesAreToldInOrderOfPlaceAndFilesInOrderOfFirstBlame) {
  Diagnostics found;
  found.error(at("z.yaml", 9, 1), "third");
  found.error(at("a.yaml", 1, 1), "fourth");
  found.error(at("z.yaml", 2, 5), "second");
  found.error(at("z.yaml", 2, 4), "first");
  try {
    found.throw_if_any();
    FAIL() << "four mistakes must throw";
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(),
                 "z.yaml:2:4: error: first\n"
                 "z.yaml:2:5: error: second\n"
                 "z.yaml:9:1: error: third\n"
                 "a.yaml:1:1: error: fourth");
    EXPECT_EQ(e.diagnostics().size(), 4U);
  }
}

TEST(Diagnostics, AFileOfMistakesIsCutAtAHundred) {
  Diagnostics found;
  for (int line = 1; line <= 101; ++line) {
    found.error(at("a.yaml", line, 1), "wrong");
  }
  EXPECT_EQ(found.list().size(), 100U);
  EXPECT_EQ(found.list().back().where.line, 100);
}

TEST(Check, AFailedCheckSaysWhatWasExpectedAndWhere) {
  const int blocked = 2;
  try {
    ULYSIM_CHECK(blocked == 0, "{} ops blocked", blocked);
    FAIL() << "the check must throw";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("check failed: blocked == 0: 2 ops blocked"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("diagnostics_test.cpp:"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace ulysim
