#include "sim/base/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace ulysim {
namespace {

TEST(Exact, PicksTheShortestExactForm) {
  EXPECT_EQ(exact(Bytes(85'899'345'920)), "80GiB");
  EXPECT_EQ(exact(Bytes(80'000'000'000)), "80GB");
  EXPECT_EQ(exact(Bytes(1'610'612'736)), "1.5GiB");
  EXPECT_EQ(exact(Bytes(1'000'003)), "1000003B") << "no shorter exact form";
  EXPECT_EQ(exact(Bytes(0)), "0B");
  EXPECT_EQ(exact(Duration(1'200'000)), "1.2us");
  EXPECT_EQ(exact(Duration(90'000'000'000'000)), "90s");
  EXPECT_EQ(exact(Duration(1'234'567)), "1234567ps");
  EXPECT_EQ(exact(Bandwidth(450e9)), "450GB/s");
  EXPECT_EQ(exact(Bandwidth(3.35e12)), "3.35TB/s");
  EXPECT_EQ(exact(Bandwidth(50.0)), "50B/s");
  EXPECT_EQ(exact(FlopRate(989e12)), "989TFLOP/s");
}

TEST(Human, GivesThreeOrFourDigits) {
  // 78.4 × 2^30 = 84,181,359,001.6
  EXPECT_EQ(human(Bytes(84'181'359'002)), "78.4 GiB");
  EXPECT_EQ(human(Bytes(512)), "512 B");
  EXPECT_EQ(human(Bytes(1'024)), "1.00 KiB");
  EXPECT_EQ(human(Bytes(1'048'575)), "1.00 MiB") << "never '1024 KiB'";
  EXPECT_EQ(human(Bytes(-1'536)), "-1.50 KiB");
  EXPECT_EQ(human(Bytes(std::numeric_limits<std::int64_t>::min())), "-8.00 EiB");
  EXPECT_EQ(human(Duration(276'000'000'000'000)), "276 s");
  EXPECT_EQ(human(Duration(1'200'000)), "1.20 us");
  EXPECT_EQ(human(Duration(17)), "17 ps");
  EXPECT_EQ(human(Duration(999'999)), "1.00 us") << "never '1000 ns'";
  EXPECT_EQ(human(Duration(86'400'000'000'000'000)), "24.0 h");
  EXPECT_EQ(human(Duration(0)), "0 s");
}

TEST(Human, CountsAreGroupedByThousands) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1'048'576), "1,048,576");
  EXPECT_EQ(human_count(-1'000), "-1,000");
  EXPECT_EQ(human_count(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

}  // namespace
}  // namespace ulysim
