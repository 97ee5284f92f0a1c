#include "sim/base/ids.h"

#include <gtest/gtest.h>

namespace ulysim {
namespace {

TEST(Ids, CompareByTheirNumber) {
  EXPECT_EQ(RankId(3), RankId(3U));
  EXPECT_NE(RankId(3), RankId(4));
  EXPECT_LT(RankId(3), RankId(4));
  EXPECT_FALSE(RankId(4) < RankId(4));
}

TEST(Ids, IndexIsTheNumberItself) {
  EXPECT_EQ(LinkId(std::size_t{7}).index(), 7U);
}

}  // namespace
}  // namespace ulysim
