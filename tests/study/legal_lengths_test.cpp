// Which question this answers: are the lengths that maxseq looks among legal, dense enough, and numbered without gaps?

#include "sim/study/legal_lengths.h"

#include <gtest/gtest.h>

#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

TEST(LegalLengths, StandLikeFloatingPointNumbers) {
  const LegalLengths lengths(16, 1 << 20);
  EXPECT_EQ(lengths.tokens(1), 16);
  EXPECT_EQ(lengths.tokens(511), 511 * 16);
  EXPECT_EQ(lengths.tokens(512), 512 * 16);
  EXPECT_EQ(lengths.tokens(513), 514 * 16) << "256 to a doubling: from 512 units on every second";
  EXPECT_EQ(lengths.tokens(768), 1024 * 16);
  EXPECT_EQ(lengths.tokens(769), 1028 * 16);
  EXPECT_EQ(lengths.tokens(lengths.count()), 1 << 20);
}

TEST(LegalLengths, AreNumberedWithoutGapsAndNeverFurtherApartThanOneIn256) {
  for (const std::int64_t unit : {1, 8, 16, 24, 4096}) {
    const LegalLengths lengths(unit, std::int64_t{1} << 31);
    for (std::size_t i = 1; i <= lengths.count(); ++i) {
      const std::int64_t tokens = lengths.tokens(i);
      ASSERT_EQ(tokens % unit, 0) << unit << " number " << i;
      ASSERT_EQ(lengths.index_below(tokens), i) << unit;
      ASSERT_EQ(lengths.index_below(tokens + unit - 1), i) << unit;
      ASSERT_EQ(lengths.index_below(tokens - 1), i - 1) << unit;
      if (i > 256) {
        ASSERT_LE((tokens - lengths.tokens(i - 1)) * 256, lengths.tokens(i - 1)) << unit << " number " << i;
      }
    }
    EXPECT_EQ(lengths.index_below(std::int64_t{1} << 40), lengths.count());
  }
}

TEST(LegalLengths, AreThoseThatEveryPassAccepts) {
  const scenario::Scenario scenario =
      parse({.training = "{sequence_length: 64Ki}",
             .plans = "[{ulysses: 8}, {ring: 8}, {ring: 8, ring_layout: contiguous}, {tensor: 2, ulysses: 2, ring: 2}, "
                      "{data: 8}]"});
  const std::vector<std::int64_t> units{8, 16, 8, 16, 1};
  for (std::size_t p = 0; p < units.size(); ++p) {
    const LegalLengths lengths = legal_lengths(scenario, scenario.plans[p]);
    EXPECT_EQ(lengths.tokens(1), units[p]) << scenario.plans[p].plan.name;
    for (const std::size_t i : {std::size_t{1}, std::size_t{7}, std::size_t{513}, lengths.count()}) {
      scenario::PlanEntry entry = scenario.plans[p];
      entry.plan.sequence_length = lengths.tokens(i);
      EXPECT_TRUE(check(scenario, entry).empty()) << entry.plan.name << " at " << entry.plan.sequence_length;
    }
  }
}

}  // namespace
}  // namespace ulysim::study
