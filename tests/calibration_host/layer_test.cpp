// Which question this answers: do the blocked kernels, Ulysses and the zigzag ring compute what the definition of
// attention says, forward and backward? The reference runs in one process, in double, with all scores at once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/host/host_backend.h"
#include "calibration/host/sequence_parallel.h"

namespace ulysim::calibration::host {
namespace {

constexpr double kTolerance = 1e-5;

LayerProbe layer(Scheme scheme, Mask mask, std::int64_t tokens, std::int64_t kv_heads) {
  return {.scheme = scheme, .mask = mask, .tokens = tokens, .heads = 4, .kv_heads = kv_heads, .head_dim = 32};
}

TEST(Kernels, BlockedAttentionIsTheDefinition) {
  const auto backend = make_host_backend({.ranks = 1});
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const Mask mask : {Mask::full, Mask::causal}) {
      // Within a tile of 64 by 128, and several tiles with a torn last one; 2 query heads share a K and V head.
      for (const std::int64_t tokens : {16, 300}) {
        const AttentionProbe probe{
            .pass = pass, .mask = mask, .heads = 4, .kv_heads = 2, .head_dim = 32, .queries = tokens, .keys = tokens};
        EXPECT_LE(backend->verify(probe), kTolerance)
            << tokens << (mask == Mask::causal ? " causal " : " full ") << static_cast<int>(pass);
      }
    }
  }
}

TEST(Kernels, GemmIsTheDefinition) {
  const auto backend = make_host_backend({.ranks = 1});
  EXPECT_LE(backend->verify(GemmProbe{.m = 65, .n = 33, .k = 129}), kTolerance);
}

TEST(Layers, UlyssesAndRingAreTheDefinition) {
  for (const Fabric fabric : {Fabric::shared_memory, Fabric::tcp_loopback}) {
    for (const int ranks : {1, 2}) {
      const auto backend = make_host_backend({.ranks = ranks, .fabric = fabric});
      for (const Scheme scheme : {Scheme::ulysses, Scheme::ring}) {
        for (const Mask mask : {Mask::full, Mask::causal}) {
          for (const std::int64_t kv_heads : {4, 2}) {
            EXPECT_LE(backend->verify(layer(scheme, mask, 256, kv_heads)), kTolerance)
                << backend->fabric() << " " << ranks << (scheme == Scheme::ring ? " ring" : " ulysses")
                << (mask == Mask::causal ? " causal " : " full ") << kv_heads;
          }
        }
      }
    }
  }
}

TEST(Layers, FourRanksPassBlocksOnMoreThanOnce) {
  const auto backend = make_host_backend({.ranks = 4});
  EXPECT_LE(backend->verify(layer(Scheme::ring, Mask::causal, 272, 2)), kTolerance);
  EXPECT_LE(backend->verify(layer(Scheme::ulysses, Mask::causal, 272, 4)), kTolerance);
}

TEST(Layers, WhatDoesNotDivideIsRefusedWithASentence) {
  const auto backend = make_host_backend({.ranks = 4});
  EXPECT_THAT([&] { (void)backend->verify(layer(Scheme::ulysses, Mask::full, 256, 2)); },
              testing::ThrowsMessage<ImpossibleProbe>("2 KV heads do not divide by 4 ranks"));
  EXPECT_THAT([&] { (void)backend->measure(layer(Scheme::ring, Mask::full, 252, 4), {}); },
              testing::ThrowsMessage<ImpossibleProbe>("252 tokens do not divide into 8 zigzag chunks"));
}

TEST(Work, ZigzagLeavesEveryRankHalfOfTheCausalSquare) {
  // 2048 tokens, 2 ranks, chunks of 512 (tiles divide them). Rank 0 holds chunks 0 and 3: 1 + 4 chunk pairs of which
  // two on the diagonal; rank 1 chunks 1 and 2: 2 + 3 and two on the diagonal. Both 3 whole pairs and 2 diagonal ones.
  // On the diagonal, row tile i of 64 (0..7) computes floor(i/2) + 1 column tiles: 1+1+2+2+3+3+4+4 = 20 of 64·128.
  const std::int64_t expected = 3 * 512 * 512 + 2 * 20 * 64 * 128;
  EXPECT_EQ(computed_scores(layer(Scheme::ring, Mask::causal, 2048, 4), 2), 4 * expected);
}

TEST(Work, WithoutAMaskTheSchemesComputeTheSame) {
  // 4 heads of 1024² scores over 2 ranks.
  const std::int64_t expected = std::int64_t{4} * 1024 * 1024 / 2;
  EXPECT_EQ(computed_scores(layer(Scheme::ulysses, Mask::full, 1024, 4), 2), expected);
  EXPECT_EQ(computed_scores(layer(Scheme::ring, Mask::full, 1024, 4), 2), expected);
}

}  // namespace
}  // namespace ulysim::calibration::host
