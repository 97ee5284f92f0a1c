// Token sets against a loop over all positions, and against closed forms where no loop would end.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
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

/// Which document or chunk a position lies in, found by walking from the first.
std::int64_t stretch_of(std::int64_t position, const std::vector<std::int64_t>& ends) {
  std::int64_t number = 0;
  for (std::int64_t period = 0;; period += ends.back()) {
    for (const std::int64_t end : ends) {
      if (position < period + end) {
        return number;
      }
      ++number;
    }
  }
}

/// The definition of mask.h, block by block.
bool keeps(const BlockSparse& p, std::int64_t row, std::int64_t column) {
  if (p.density) {
    return row == column || (column < row && kept_blocks(p, row, column, column + 1) == 1);
  }
  const std::int64_t apart = std::abs(row - column);
  return apart < p.local || row < p.global || column < p.global || (p.stride && apart % *p.stride == 0);
}

bool sees(std::int64_t query, std::int64_t key, const Mask& mask) {
  if (mask.documents && stretch_of(query, *mask.documents) != stretch_of(key, *mask.documents)) {
    return false;
  }
  if (mask.chunk && stretch_of(query, {*mask.chunk}) != stretch_of(key, {*mask.chunk})) {
    return false;
  }
  if (mask.sparse && !keeps(*mask.sparse, query / mask.sparse->block, key / mask.sparse->block)) {
    return false;
  }
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
    if (pick(0, 3) == 0) {
      mask.chunk = pick(1, tokens + 2);
    }
    std::string lengths;
    if (pick(0, 2) == 0) {
      // Sometimes fewer tokens than the sequence has: the lengths come again.
      std::vector<std::int64_t> ends;
      for (std::int64_t n = pick(1, 6), end = 0; n > 0; --n) {
        ends.push_back(end += pick(1, 9));
        lengths += fmt::format(" {}", ends.back());
      }
      mask.documents = std::make_shared<const std::vector<std::int64_t>>(std::move(ends));
    }
    SCOPED_TRACE(
        fmt::format("seed {}, case {}: {} tokens {} on {}, queries of {}, keys of {}, mask {}, documents end {}", kSeed,
                    i, tokens, name(layout), rings, at, from, describe(mask), lengths));
    const TokenSet queries = ring_tokens(tokens, layout, at, rings);
    const TokenSet keys = ring_tokens(tokens, layout, from, rings);
    const Counted expected = by_hand(queries, keys, mask);
    ASSERT_EQ(count_pairs(queries, keys, mask), expected.pairs);
    const Rectangle box = bounding_rectangle(queries, keys, mask);
    ASSERT_EQ(box.queries, expected.box.queries);
    ASSERT_EQ(box.keys, expected.box.keys);
  }
}

/// Pairs in kept blocks, those above the diagonal of a block too.
std::int64_t computed_by_hand(const TokenSet& queries, const TokenSet& keys, const Mask& mask) {
  const std::int64_t block = mask.sparse->block;
  std::int64_t sum = 0;
  for (const std::int64_t q : positions(queries)) {
    for (const std::int64_t k : positions(keys)) {
      const bool own_document = !mask.documents || stretch_of(q, *mask.documents) == stretch_of(k, *mask.documents);
      const bool visible = mask.kind == Mask::Kind::full || k / block <= q / block;
      sum += own_document && visible && keeps(*mask.sparse, q / block, k / block) ? 1 : 0;
    }
  }
  return sum;
}

/// A pattern that suits stripes of `step`.
BlockSparse pick_pattern(std::mt19937& random, std::int64_t step, bool causal) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  BlockSparse pattern{.block = step * pick(1, 4)};
  if (causal && pick(0, 2) == 0) {
    pattern.density = static_cast<double>(pick(0, 8)) / 8.0;
    pattern.seed = static_cast<std::uint64_t>(pick(0, 1000));
    return pattern;
  }
  pattern.local = pick(1, 4);
  pattern.global = pick(0, 3);
  if (pick(0, 1) == 0) {
    pattern.stride = pick(1, 5);
  }
  return pattern;
}

TEST(TokenSet, block_patterns_equal_a_count_by_hand) {
  constexpr std::uint32_t kSeed = 11;
  std::mt19937 random(kSeed);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 4000; ++i) {
    const std::int64_t rings = pick(1, 4);
    const std::int64_t tokens = 2 * rings * pick(1, 12);
    const auto layout = static_cast<Layout>(pick(0, 2));
    Mask mask{.kind = pick(0, 3) == 0 ? Mask::Kind::full : Mask::Kind::causal};
    mask.sparse = pick_pattern(random, layout == Layout::striped ? rings : 1, mask.kind == Mask::Kind::causal);
    if (pick(0, 3) == 0) {
      mask.documents = std::make_shared<const std::vector<std::int64_t>>(std::vector{pick(1, 9), pick(10, 40)});
    }
    const std::int64_t at = pick(0, rings - 1);
    const std::int64_t from = pick(0, rings - 1);
    SCOPED_TRACE(fmt::format("seed {}, case {}: {} tokens {} on {}, queries of {}, keys of {}, mask {}", kSeed, i,
                             tokens, name(layout), rings, at, from, describe(mask)));
    const TokenSet queries = ring_tokens(tokens, layout, at, rings);
    const TokenSet keys = ring_tokens(tokens, layout, from, rings);
    const Counted expected = by_hand(queries, keys, mask);
    const PairCount counted = pair_count(queries, keys, mask);
    ASSERT_EQ(counted.unmasked, expected.pairs);
    ASSERT_EQ(counted.computed, computed_by_hand(queries, keys, mask));
    const Rectangle box = bounding_rectangle(queries, keys, mask);
    ASSERT_GE(box.queries, expected.box.queries);
    ASSERT_GE(box.keys, expected.box.keys);
  }
}

TEST(TokenSet, kernels_compute_kept_blocks_whole) {
  // 4 blocks of 4, each row of blocks keeps its own and the one before it: 7 blocks of 16 are computed; the diagonal
  // ones show 4·5/2 = 10 pairs each.
  const TokenSet all{{.first = 0, .end = 16}};
  const PairCount counted = pair_count(all, all, {.sparse = BlockSparse{.block = 4, .local = 2}});
  EXPECT_EQ(counted.computed, 7 * 16);
  EXPECT_EQ(counted.unmasked, 3 * 16 + 4 * 10);
}

TEST(BlockSparse, density_keeps_its_share_of_every_row) {
  const BlockSparse pattern{.density = 0.1, .seed = 3};
  for (const std::int64_t row : {0, 1, 9, 100, 16383}) {
    // Of row+1 causal blocks a tenth, rounded, its own among them.
    const auto all = static_cast<std::int64_t>(0.1 * static_cast<double>(row + 1) + 0.5);
    EXPECT_EQ(kept_blocks(pattern, row, 0, row), std::max<std::int64_t>(all - 1, 0));
    std::int64_t one_by_one = 0;
    for (std::int64_t column = 0; column < row; ++column) {
      const std::int64_t kept = kept_blocks(pattern, row, column, column + 1);
      EXPECT_LE(kept, 1);
      one_by_one += kept;
    }
    EXPECT_EQ(one_by_one, kept_blocks(pattern, row, 0, row));
  }
}

TEST(BlockSparse, another_seed_picks_other_blocks) {
  const auto picked = [](std::uint64_t seed) {
    std::vector<std::int64_t> blocks;
    for (std::int64_t column = 0; column < 1000; ++column) {
      if (kept_blocks({.density = 0.1, .seed = seed}, 1000, column, column + 1) > 0) {
        blocks.push_back(column);
      }
    }
    return blocks;
  };
  EXPECT_EQ(picked(1), picked(1));
  EXPECT_NE(picked(1), picked(2));
}

TEST(TokenSet, a_million_tokens_of_a_strided_pattern_equal_the_closed_form) {
  // n = 8192 blocks of 128; a row of blocks b keeps its own and the floor(b/64) blocks that lie a multiple of 64 before
  // it: sum over b is 64·(0 + 1 + … + 127).
  const TokenSet all{{.first = 0, .end = 1 << 20}};
  const PairCount counted = pair_count(all, all, {.sparse = BlockSparse{.block = 128, .local = 1, .stride = 64}});
  constexpr std::int64_t kEarlier = 64 * (127 * 128 / 2);
  EXPECT_EQ(counted.computed, (kEarlier + 8192) * 128 * 128);
  EXPECT_EQ(counted.unmasked, kEarlier * 128 * 128 + 8192 * (128 * 129 / 2));
}

TEST(TokenSet, packed_documents_are_triangles_of_their_own) {
  // 1, 2 and 5 tokens: 1 + 3 + 15 pairs, whoever holds them.
  const Mask mask{.documents = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{1, 3, 8})};
  for (const Layout layout : {Layout::contiguous, Layout::zigzag, Layout::striped}) {
    std::int64_t sum = 0;
    for (std::int64_t at = 0; at < 4; ++at) {
      for (std::int64_t from = 0; from < 4; ++from) {
        sum += count_pairs(ring_tokens(8, layout, at, 4), ring_tokens(8, layout, from, 4), mask);
      }
    }
    EXPECT_EQ(sum, 19) << name(layout);
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
