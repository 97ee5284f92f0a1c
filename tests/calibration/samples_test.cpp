#include "calibration/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

const std::string kGemm = "gpu,precision,m,n,k,tflops,spread,regime,source\n";
const std::string kAttention =
    "gpu,implementation,direction,mask,sequences,heads,kv_heads,head_dim,queries,keys,tflops,spread,regime,source\n";

// 2·1000·1000·1000 = 2 GFLOP at 2 TFLOP/s = 1 ms.
TEST(Samples, ATimeFollowsFromThePrintedRate) {
  const auto samples = parse_gemm_samples(kGemm + "g,bf16,1000,1000,1000,2,0.05,burst,lab\n", "f.csv");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_DOUBLE_EQ(samples[0].seconds, 1e-3);
  EXPECT_EQ(samples[0].spread, 0.05);
  EXPECT_EQ(samples[0].regime, Regime::burst);
  EXPECT_EQ(samples[0].source, "lab");
}

// Causal 100x100 has 5050 pairs: 4·10·5050·2 heads = 404,000 FLOP forward, 3.5 times that both ways.
TEST(Samples, CausalAttentionCountsItsTriangleAndBothDirections) {
  const auto samples =
      parse_attention_samples(kAttention + "g,cudnn,both,causal,1,2,2,10,100,100,1,,sustained,lab\n", "f.csv");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].kernels.size(), 2U);
  EXPECT_DOUBLE_EQ(flops_of(samples[0]), 3.5 * 404000.0);
  EXPECT_FALSE(samples[0].spread.has_value());
}

// 100 tokens · 2 heads · 10 of K and of V, 2 B each, read and written: 16,000 B; no further FLOPs.
TEST(Samples, AServingLayerAlsoWritesItsCache) {
  const auto samples = parse_attention_samples(
      kAttention + "g,cudnn,forward+kv-write,full,1,2,2,10,100,100,1,,sustained,lab\n", "f.csv");
  EXPECT_EQ(traffic(samples.at(0).kernels.at(1)).value(), 16000);
  EXPECT_DOUBLE_EQ(flops_of(samples[0]), 800000.0);
}

TEST(Samples, EveryBadRowIsNamedByItsLine) {
  try {
    (void)parse_gemm_samples(kGemm + "g,bf16,1,1\n" + "g,bf17,1,1,1,0,,burst,lab\n" + "g,bf16,x,1,1,5,,cold,lab\n",
                             "f.csv");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    std::string all;
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      all += to_string(diagnostic) + "\n";
    }
    EXPECT_THAT(all, ::testing::HasSubstr("f.csv:2:1: error: 4 cells instead of 9"));
    EXPECT_THAT(all, ::testing::HasSubstr("f.csv:3:1: error: cannot read 'bf17'"));
    EXPECT_THAT(all, ::testing::HasSubstr("f.csv:3:1: error: a rate must be above 0"));
    EXPECT_THAT(all, ::testing::HasSubstr("f.csv:4:1"));
    EXPECT_THAT(all, ::testing::HasSubstr("cannot read 'cold'"));
  }
}

}  // namespace
}  // namespace ulysim::calibration
