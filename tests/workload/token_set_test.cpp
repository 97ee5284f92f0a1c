// Token sets against a loop over all positions, and against closed forms where no loop would end.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "sim/base/check.h"
#include "sim/workload/token_set.h"

namespace ulysim::workload {
namespace {

std::vector<std::int64_t> positions(const TokenSet& set) {
  std::vector<std::int64_t> all;
  for (const TokenRange& range : set) {
    for (std::int64_t t = range.first; t < range.end; t += range.step) {
      all.push_back(t);
    }
  }
  return all;
}

bool sees(std::int64_t query, std::int64_t key, const Mask& mask) {
  return mask.kind == Mask::Kind::full || (key <= query && (!mask.window || key > query - *mask.window));
}

struct Counted {
  std::int64_t pairs{};
  Rectangle box{};
};

Counted by_hand(const TokenSet& queries, const TokenSet& keys, const Mask& mask) {
  const auto q = positions(queries);
  const auto k = positions(keys);
  Counted counted;
  std::vector<bool> row(q.size());
  std::vector<bool> column(k.size());
  for (std::size_t i = 0; i < q.size(); ++i) {
    for (std::size_t j = 0; j < k.size(); ++j) {
      if (sees(q[i], k[j], mask)) {
        ++counted.pairs;
        row[i] = column[j] = true;
      }
    }
  }
  counted.box = {.queries = std::count(row.begin(), row.end(), true),
                 .keys = std::count(column.begin(), column.end(), true)};
  return counted;
}

TEST(TokenSet, every_position_belongs_to_one_rank) {
  for (const Layout layout : {Layout::contiguous, Layout::zigzag, Layout::striped}) {
    std::vector<int> owners(48);
    for (std::int64_t ring = 0; ring < 4; ++ring) {
      const auto own = positions(ring_tokens(48, layout, ring, 4));
      EXPECT_EQ(own.size(), 12U);
      for (const std::int64_t t : own) {
        ++owners[static_cast<std::size_t>(t)];
      }
    }
    EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), 48) << name(layout);
  }
}

TEST(TokenSet, pairs_and_rectangles_equal_a_count_by_hand) {
  constexpr std::uint32_t kSeed = 7;
  std::mt19937 random(kSeed);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 4000; ++i) {
    const std::int64_t rings = pick(1, 5);
    const std::int64_t tokens = 2 * rings * pick(1, 7);
    const auto layout = static_cast<Layout>(pick(0, 2));
    const std::int64_t at = pick(0, rings - 1);
    const std::int64_t from = pick(0, rings - 1);
    Mask mask{.kind = pick(0, 3) == 0 ? Mask::Kind::full : Mask::Kind::causal};
    if (mask.kind == Mask::Kind::causal && pick(0, 1) == 0) {
      mask.window = pick(1, tokens + 2);
    }
    SCOPED_TRACE(fmt::format("seed {}, case {}: {} tokens {} on {}, queries of {}, keys of {}, mask {} window {}",
                             kSeed, i, tokens, name(layout), rings, at, from, static_cast<int>(mask.kind),
                             mask.window.value_or(0)));
    const TokenSet queries = ring_tokens(tokens, layout, at, rings);
    const TokenSet keys = ring_tokens(tokens, layout, from, rings);
    const Counted expected = by_hand(queries, keys, mask);
    ASSERT_EQ(count_pairs(queries, keys, mask), expected.pairs);
    const Rectangle box = bounding_rectangle(queries, keys, mask);
    ASSERT_EQ(box.queries, expected.box.queries);
    ASSERT_EQ(box.keys, expected.box.keys);
  }
}

TEST(TokenSet, zigzag_calls_half_the_rows_or_half_the_columns) {
  // Rank 1 of 4 holds chunks 1 and 6 of 8. Keys of rank 0 (chunks 0 and 7): both query chunks see chunk 0 only. Keys
  // of rank 2 (chunks 2 and 5): only query chunk 6 sees them, both.
  const auto of = [](std::int64_t rank) { return ring_tokens(8000, Layout::zigzag, rank, 4); };
  const Rectangle earlier = bounding_rectangle(of(1), of(0), {});
  EXPECT_EQ(earlier.queries, 2000);
  EXPECT_EQ(earlier.keys, 1000);
  const Rectangle later = bounding_rectangle(of(1), of(2), {});
  EXPECT_EQ(later.queries, 1000);
  EXPECT_EQ(later.keys, 2000);
}

std::int64_t pairs_of_rank(std::int64_t tokens, Layout layout, std::int64_t rank, std::int64_t rings) {
  std::int64_t sum = 0;
  for (std::int64_t other = 0; other < rings; ++other) {
    sum += count_pairs(ring_tokens(tokens, layout, rank, rings), ring_tokens(tokens, layout, other, rings), {});
  }
  return sum;
}

TEST(TokenSet, zigzag_balances_exactly) {
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(pairs_of_rank(1 << 20, Layout::zigzag, rank, 8), (1LL << 20) * ((1LL << 20) + 1) / 2 / 8);
  }
}

TEST(TokenSet, striped_balances_up_to_one_token_a_row) {
  // Token t sees t+1 keys: rank r sees S/R pairs more than rank r−1, out of about S²/(2R).
  const std::int64_t part = (1 << 20) / 8;
  for (std::int64_t rank = 1; rank < 8; ++rank) {
    EXPECT_EQ(pairs_of_rank(1 << 20, Layout::striped, rank, 8) - pairs_of_rank(1 << 20, Layout::striped, rank - 1, 8),
              part);
  }
}

TEST(TokenSet, four_million_tokens_equal_the_closed_form) {
  constexpr std::int64_t kTokens = 4'000'000;
  const TokenSet all = ring_tokens(kTokens, Layout::contiguous, 0, 1);
  EXPECT_EQ(count_pairs(all, all, {.kind = Mask::Kind::full}), kTokens * kTokens);
  EXPECT_EQ(count_pairs(all, all, {}), kTokens * (kTokens + 1) / 2);
  // A window of w: the first w rows see 1, 2 … w keys, the others w.
  constexpr std::int64_t kWindow = 4096;
  EXPECT_EQ(count_pairs(all, all, {.window = kWindow}), kTokens * kWindow - kWindow * (kWindow - 1) / 2);
}

TEST(TokenSet, more_pairs_than_can_be_counted_are_refused) {
  // 2^32 squared is 2^64; half of it, 2^63 and a little, is still one too many.
  const TokenSet all = ring_tokens(std::int64_t{1} << 32U, Layout::contiguous, 0, 1);
  EXPECT_THROW((void)count_pairs(all, all, {.kind = Mask::Kind::full}), RangeError);
  EXPECT_THROW((void)count_pairs(all, all, {}), RangeError);
  const TokenSet less = ring_tokens(3'000'000'000, Layout::contiguous, 0, 1);
  EXPECT_EQ(count_pairs(less, less, {.kind = Mask::Kind::full}), 9'000'000'000'000'000'000);
}

}  // namespace
}  // namespace ulysim::workload
