// Which question this answers: is attention that ranks share the same as attention that nobody shares? The very
// structs that a GPU runs are run on the host, with every rank in this process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "calibration/cuda/checked_numbers.h"
#include "calibration/cuda/sequence_split.h"
#include "calibration/cuda/virtual_check.h"
#include "tests/calibration_cuda/host_device.h"

namespace ulysim::calibration::cuda {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Lt;

// The relative errors of out, dq, dk and dv of a method among `world` ranks against plain attention.
CheckedErrors errors_of(SequenceMethod method, const SequenceShape& shape, int world) {
  const auto device = make_host_device();
  const auto referee = make_reference_attention(*device);
  return check_virtual_ranks({.method = method, .shape = shape, .world = world, .seed = 7},
                             {.device = device.get(), .tested = referee.get(), .referee = referee.get()});
}

class Shared : public testing::TestWithParam<std::tuple<SequenceMethod, int, Mask, std::int64_t>> {};

TEST_P(Shared, AttentionIsThatOfOneRank) {
  const auto [method, world, mask, kv_heads] = GetParam();
  const SequenceShape shape{.tokens = 64, .heads = 8, .kv_heads = kv_heads, .head_dim = 16, .mask = mask};
  const CheckedErrors errors = errors_of(method, shape, world);
  // Two roundings to bf16 (2⁻⁹ each) and as many more as blocks are merged from rounded results.
  EXPECT_LT(errors.out, 0.01);
  EXPECT_LT(errors.dq, 0.01);
  EXPECT_LT(errors.dk, 0.01);
  EXPECT_LT(errors.dv, 0.01);
}

INSTANTIATE_TEST_SUITE_P(
    Every, Shared,
    testing::Combine(testing::Values(SequenceMethod::ulysses, SequenceMethod::ring, SequenceMethod::gathered),
                     testing::Values(1, 2, 4, 8), testing::Values(Mask::full, Mask::causal), testing::Values(8, 2)));

TEST(SharedAttention, OneRankOfUlyssesIsExact) {
  // One rank packs and unpacks, and changes nothing.
  const CheckedErrors errors =
      errors_of(SequenceMethod::ulysses, {.tokens = 32, .heads = 4, .kv_heads = 4, .head_dim = 8}, 1);
  EXPECT_EQ(errors.out + errors.dq + errors.dk + errors.dv, 0.0);
}

TEST(SharedAttention, WhatCannotBeSharedIsSaidInASentence) {
  const SequenceShape shape{.tokens = 64, .heads = 6, .kv_heads = 6, .head_dim = 16};
  EXPECT_THAT(why_not(SequenceMethod::ulysses, shape, 4).value_or(""), HasSubstr("6 heads do not split over 4 ranks"));
  EXPECT_EQ(why_not(SequenceMethod::ring, shape, 4), std::nullopt);
  EXPECT_THAT(why_not(SequenceMethod::ring, {.tokens = 60, .heads = 6, .kv_heads = 6, .head_dim = 16}, 4).value_or(""),
              HasSubstr("60 tokens"));
  EXPECT_THAT(why_not(SequenceMethod::ring, {.tokens = 64, .heads = 8, .kv_heads = 3, .head_dim = 16}, 2).value_or(""),
              HasSubstr("3 KV heads"));
  EXPECT_THAT(why_not(SequenceMethod::ring, {.tokens = 64, .heads = 8, .kv_heads = 8, .head_dim = 20}, 2).value_or(""),
              HasSubstr("head size of 20"));
}

// Marks every pair of a block; returns how often each pair of the matrix is marked.
class Pairs {
 public:
  explicit Pairs(std::int64_t tokens) : tokens_(tokens), times_(static_cast<std::size_t>(tokens * tokens)) {}
  template <class Row, class Column>
  void mark(const Block& block, Row row, Column column) {
    for (std::int64_t q = 0; q < block.queries; ++q) {
      const std::int64_t seen = block.mask == Mask::causal ? q + 1 : block.keys;
      for (std::int64_t k = 0; k < seen; ++k) {
        ++times_[static_cast<std::size_t>(row(block.query_begin + q) * tokens_ + column(block.key_begin + k))];
      }
    }
  }
  void expect_causal_once() const {
    for (std::int64_t q = 0; q < tokens_; ++q) {
      for (std::int64_t k = 0; k < tokens_; ++k) {
        ASSERT_EQ(times_[static_cast<std::size_t>(q * tokens_ + k)], k <= q ? 1 : 0) << "query " << q << " key " << k;
      }
    }
  }

 private:
  std::int64_t tokens_;
  std::vector<int> times_;
};

std::int64_t token_of(int rank, int world, std::int64_t chunk, std::int64_t local) {
  return local < chunk ? rank * chunk + local : (2 * world - 1 - rank) * chunk + local - chunk;
}

TEST(Split, TheBlocksOfARingCoverEveryVisiblePairOnce) {
  constexpr int kWorld = 4;
  constexpr std::int64_t kChunk = 3;
  Pairs pairs(2 * kWorld * kChunk);
  for (int rank = 0; rank < kWorld; ++rank) {
    for (int source = 0; source < kWorld; ++source) {
      pairs.mark(
          ring_block({.world = kWorld, .chunk = kChunk, .mask = Mask::causal}, rank, source),
          [&](std::int64_t q) { return token_of(rank, kWorld, kChunk, q); },
          [&](std::int64_t k) { return token_of(source, kWorld, kChunk, k); });
    }
  }
  pairs.expect_causal_once();
}

TEST(Split, TheBlocksOverGatheredKeysCoverEveryVisiblePairOnce) {
  constexpr int kWorld = 4;
  constexpr std::int64_t kChunk = 3;
  Pairs pairs(2 * kWorld * kChunk);
  for (int rank = 0; rank < kWorld; ++rank) {
    for (const Block& block : gathered_blocks({.world = kWorld, .chunk = kChunk, .mask = Mask::causal}, rank)) {
      pairs.mark(
          block, [&](std::int64_t q) { return token_of(rank, kWorld, kChunk, q); }, [](std::int64_t k) { return k; });
    }
  }
  pairs.expect_causal_once();
}

TEST(Split, EveryRankOfARingDoesTheSameWorkInEveryStepButItsOwn) {
  // 2c queries on c keys and c queries on 2c keys are both 2c² pairs.
  constexpr ZigzagSplit kSplit{.world = 4, .chunk = 5, .mask = Mask::causal};
  std::vector<std::int64_t> pairs;
  for (int rank = 0; rank < 4; ++rank) {
    for (int step = 1; step < 4; ++step) {
      const Block block = ring_block(kSplit, rank, (rank + step) % 4);
      pairs.push_back(block.queries * block.keys);
    }
  }
  EXPECT_THAT(pairs, Each(2 * 5 * 5));
}

// Every element a different number, so that a wrong place shows. Eight elements are one vector.
std::vector<Vector16> numbered(std::int64_t vectors) {
  std::vector<Vector16> result(static_cast<std::size_t>(vectors));
  std::uint16_t next = 0;
  for (Vector16& vector : result) {
    for (Bf16& element : vector.element) {
      element.bits = next++;
    }
  }
  return result;
}

TEST(Pack, PutsTheHeadsOfAPeerTogether) {
  // 3 tokens, 4 heads of 16 elements (2 vectors), 2 peers: peer 1 gets heads 2 and 3 of every token.
  const auto from = numbered(3 * 4 * 2);
  std::vector<Vector16> to(from.size());
  run_on_host(PackHeads{.from = from.data(), .to = to.data(), .tokens = 3, .split = {4, 2}, .vectors = 2});
  const auto first = [](const Vector16& vector) { return int{vector.element[0].bits}; };
  // [peer 1][token 2][head 0 of its own][vector 1] is token 2, head 2, vector 1: vector (2·4 + 2)·2 + 1 = 21.
  EXPECT_EQ(first(to[static_cast<std::size_t>(((1 * 3 + 2) * 2 + 0) * 2 + 1)]), 8 * 21);
  std::vector<Vector16> back(from.size());
  run_on_host(UnpackHeads{.from = to.data(), .to = back.data(), .tokens = 3, .split = {4, 2}, .vectors = 2});
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(first(back[i]), first(from[i]));
  }
}

TEST(Pack, FewKvHeadsAreRepeatedAndTheirGradientsAdded) {
  // 2 heads on 4 ranks: every head twice; unpacking ones gives twos.
  Vector16 one;
  for (Bf16& element : one.element) {
    element = to_bf16(1.0F);
  }
  const std::vector<Vector16> from(2 * 2, one);
  std::vector<Vector16> to(4 * 2);
  const HeadSplit split(2, 4);
  run_on_host(PackHeads{.from = from.data(), .to = to.data(), .tokens = 2, .split = split, .vectors = 1});
  std::vector<Vector16> back(from.size());
  run_on_host(UnpackHeads{.from = to.data(), .to = back.data(), .tokens = 2, .split = split, .vectors = 1});
  for (const Vector16& vector : back) {
    EXPECT_EQ(to_float(vector.element[3]), 2.0F);
  }
}

TEST(Divider, IsDivision) {
  std::mt19937 random(11);
  for (const std::int64_t divisor : {1, 2, 3, 7, 16, 100, 127, 128, 1000003, 2147483647}) {
    const Divider by(divisor);
    for (int i = 0; i < 1000; ++i) {
      const auto number = static_cast<std::uint32_t>(random() >> 1U);
      ASSERT_EQ(by.divide(number), number / static_cast<std::uint32_t>(divisor)) << number << " by " << divisor;
    }
    EXPECT_EQ(by.divide(static_cast<std::uint32_t>(divisor)), 1U);
    EXPECT_EQ(by.divide(static_cast<std::uint32_t>(divisor - 1)), 0U);
  }
}

// Rings, trees and switches add in different orders and round to bf16 on the way: no order may matter.
TEST(CheckedNumbersOfCollectives, AddUpExactlyInBf16) {
  for (const int world : {2, 8, 16, 31, 64, 200, 256}) {
    const CheckedNumbers numbers(world);
    EXPECT_GE(numbers.modulus(), 2);
    for (std::int64_t i = 0; i < 62; ++i) {
      float forwards = 0.0F;
      float backwards = 0.0F;
      std::int64_t exact = 0;
      for (int rank = 0; rank < world; ++rank) {
        forwards = to_float(to_bf16(forwards + numbers.sent(rank, i)));
        backwards = to_float(to_bf16(backwards + numbers.sent(world - 1 - rank, i)));
        exact += static_cast<std::int64_t>(numbers.sent(rank, i));
      }
      ASSERT_EQ(forwards, static_cast<float>(exact)) << world << " ranks, element " << i;
      ASSERT_EQ(backwards, forwards) << world << " ranks, element " << i;
    }
  }
}

TEST(Bf16Rounding, GoesToTheNearestAndTiesToEven) {
  // bf16 keeps 8 significant bits: 1 + 2⁻⁸ lies midway between 1 and 1 + 2⁻⁷, and 1 is even.
  EXPECT_EQ(to_float(to_bf16(1.00390625F)), 1.0F);
  EXPECT_EQ(to_float(to_bf16(1.01171875F)), 1.015625F);
  EXPECT_EQ(to_float(to_bf16(-2.5F)), -2.5F);
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::nanf("")))));
}

}  // namespace
}  // namespace ulysim::calibration::cuda
