// Which question this answers: does the picture of memory keep its proportions, its width and its character set?

#include "reports/memory_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "reports/text.h"
#include "tests/reports/example.h"

namespace ulysim::reports {
namespace {

using testing::HasSubstr;

std::vector<std::string> lines(const results::Figures& figures, const Style& style) {
  std::stringstream text(memory_picture(figures, style));
  std::vector<std::string> out;
  for (std::string line; std::getline(text, line);) {
    out.push_back(line);
  }
  return out;
}

/// Peak `used` of 80 GiB: a quarter of it weights, the rest logits; the host half full.
results::Figures quarter(std::int64_t used) {
  results::Figures f = figures(100, 0, used);
  f.memory = {{"weights", Bytes(used * kGiB / 4)}, {"logits", Bytes(used * kGiB / 4 * 3)}};
  f.peak_host_memory_per_node = Bytes(1024 * kGiB);
  // Empty for a half of the step, then full.
  f.memory_curve = {{Instant(0), Bytes(0)}, {Instant(50 * kSecond), Bytes(80 * kGiB)}};
  return f;
}

TEST(Bar, HasAColumnForEachEqualShare) {
  // Width 44 leaves 40 columns for 80 GiB: 40 GiB are 20 of them, logits 15 and weights 5.
  const auto text = lines(quarter(40), {.width = 44});
  EXPECT_EQ(text[0], "GPU memory at its peak: 40.0 GiB of 80.0 GiB");
  EXPECT_EQ(text[1], "  |" + std::string(15, '#') + std::string(5, '+') + std::string(20, ' ') + "|");
  EXPECT_EQ(text[2], "    # logits 30.0 GiB   + weights 10.0 GiB");
}

TEST(Bar, ShowsTheCapacityWithinWhatIsTooMuch) {
  // 160 GiB over 40 columns: the GPU's 80 end in the middle of the 30 columns of logits.
  const auto text = lines(quarter(160), {.width = 44});
  EXPECT_EQ(text[1], "  |" + std::string(20, '#') + "|" + std::string(10, '#') + std::string(10, '+'));
}

TEST(Bar, ShowsTheHostBeside) {
  const auto text = lines(quarter(40), {.width = 44});
  ASSERT_GE(text.size(), 2U);
  EXPECT_EQ(text[text.size() - 2], "Host memory: 1.00 TiB of 2.00 TiB a node");
  EXPECT_EQ(text.back(), "  |" + std::string(20, '#') + std::string(20, ' ') + "|");
}

TEST(Bar, NamesWhatIsTooThinToBeSeen) {
  results::Figures f = quarter(40);
  f.memory.push_back({"rotary", Bytes(1024)});
  EXPECT_THAT(memory_picture(f, {.width = 44, .unicode = true}), HasSubstr("· rotary 1.00 KiB"));
}

TEST(Curve, IsEmptyWhereNothingIsAllocatedAndFullWhereAllIs) {
  const auto text = lines(quarter(40), {.width = 44, .unicode = true});
  std::string full;
  for (int i = 0; i < 20; ++i) {
    full += "█";
  }
  int rows = 0;
  for (const std::string& line : text) {
    rows += line == "  │" + std::string(20, ' ') + full ? 1 : 0;
  }
  EXPECT_EQ(rows, 4) << "the right half of every line";
}

TEST(Picture, KeepsItsWidthAndItsAscii) {
  for (const std::size_t width : {std::size_t{40}, std::size_t{60}, std::size_t{160}}) {
    for (const std::int64_t used : {1, 40, 79, 80, 81, 400}) {
      for (const std::string& line : lines(quarter(used), {.width = width, .unicode = true})) {
        EXPECT_LE(display_width(line), width) << line;
      }
      const std::string ascii = memory_picture(quarter(used), {.width = width});
      EXPECT_TRUE(std::all_of(ascii.begin(), ascii.end(), [](char c) { return static_cast<unsigned char>(c) < 128; }));
    }
  }
}

}  // namespace
}  // namespace ulysim::reports
