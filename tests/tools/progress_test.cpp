// Which question this answers: does progress tell what people want to know, and nothing that is not known?

#include "tools/progress.h"

#include <gtest/gtest.h>

namespace ulysim::tools {
namespace {

TEST(ProgressText, TellsRateAndRemainingTime) {
  EXPECT_EQ(progress_text({.done = 1200, .total = 6000, .seconds = 10.0}, "points"),
            "1,200 of 6,000 points (20%), 120/s, 40 s left");
  EXPECT_EQ(progress_text({.done = 3, .total = 12, .seconds = 2.0}, "rows"), "3 of 12 rows (25%), 1.5/s, 6 s left");
  EXPECT_EQ(progress_text({.done = 1, .total = 4, .seconds = 40.0}, "plans"),
            "1 of 4 plans (25%), 40 s each, 2 min 0 s left");
  EXPECT_EQ(progress_text({.done = 1, .total = 1000, .seconds = 20.0}, "points"),
            "1 of 1,000 points (0%), 20 s each, 5 h 33 min left");
}

TEST(ProgressText, SaysNothingOfWhatIsNotKnown) {
  EXPECT_EQ(progress_text({.done = 0, .total = 4, .seconds = 3.0}, "plans"), "0 of 4 plans (0%)");
  EXPECT_EQ(progress_text({.done = 99, .total = 100, .seconds = 9.0}, "points"), "99 of 100 points (99%), 11/s");
  EXPECT_EQ(progress_text({}, "points"), "0 of 0 points (0%)");
}

}  // namespace
}  // namespace ulysim::tools
