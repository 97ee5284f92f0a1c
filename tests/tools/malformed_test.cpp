// Which question this answers: does any broken input crash the program, hang it, or go unexplained?

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/tools/malformed.h"
#include "tests/tools/program.h"

namespace ulysim::tools {
namespace {

constexpr std::uint64_t kSeed = 20230925;
constexpr std::size_t kCount = 120;

TEST(Malformed, EachIsRefusedWithAPlaceAndAtOnce) {
  const Sandbox sandbox;
  std::size_t number = 0;
  for (const Malformed& input : malformed_scenarios(kSeed, kCount)) {
    const std::string file = sandbox.write("broken.yaml", input.text);
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = sandbox.run({"compare", file});
    const auto took = std::chrono::steady_clock::now() - begin;
    const std::string shown = "seed " + std::to_string(kSeed) + " number " + std::to_string(number++) + " (" +
                              input.kind + "):\n" + input.text.substr(0, 600) + "\n" + outcome.err;
    EXPECT_EQ(outcome.status, 2) << shown;
    EXPECT_THAT(outcome.err, testing::ContainsRegex("^[^\n]*broken.yaml:[0-9]+:[0-9]+: error: ")) << shown;
    EXPECT_EQ(outcome.out, "") << shown;
    EXPECT_LT(took, std::chrono::seconds(1)) << shown;
  }
}

TEST(Malformed, IsRefusedAsTheBaseOfASweepToo) {
  const Sandbox sandbox;
  const std::string sweep = sandbox.write("sweep.yaml", "base: broken.yaml\naxes: {training.total_tokens: [1G, 2G]}\n");
  for (const Malformed& input : malformed_scenarios(kSeed, kCount / 4)) {
    (void)sandbox.write("broken.yaml", input.text);
    const Outcome outcome = sandbox.run({"sweep", sweep});
    EXPECT_EQ(outcome.status, 2) << input.text << outcome.err;
    EXPECT_THAT(outcome.err, testing::ContainsRegex("^[^\n]*(broken|sweep).yaml:[0-9]+:[0-9]+: error: ")) << input.text;
    EXPECT_EQ(outcome.out, "") << input.text;
  }
}

}  // namespace
}  // namespace ulysim::tools
