#include <gtest/gtest.h>

#include "hw_models/cost/cost_model.h"
#include "hw_models/cost/roofline.h"
#include "tests/cost/pencil.h"

namespace ulysim::cost {
namespace {

using kernel::Attention;
using kernel::Direction;
using kernel::Gemm;
using kernel::MemoryBound;

constexpr double kMicrosecond = 1e-6;

// 4 tiles of 128x128 fill the 4 SMs once: 2·256·256·1024 = 134.2 MFLOP at 0.5 TFLOP/s = 268.4 us, and the launch.
TEST(Roofline, OneFullWaveRunsAtItsEfficiency) {
  const Gemm gemm{.m = 256, .n = 256, .k = 1024};
  EXPECT_NEAR(gemm_seconds(gemm, pencil_gpu(), pencil_profile()), (268.435456 + 1.0) * kMicrosecond, 1e-12);
}

// A fifth tile starts a second wave: twice the time where waves count whole, 5/4 where they do not at all.
TEST(Roofline, AStartedWaveCostsAWholeOne) {
  const Gemm gemm{.m = 640, .n = 128, .k = 1024};
  KernelProfile profile = pencil_profile();
  EXPECT_NEAR(gemm_seconds(gemm, pencil_gpu(), profile), (2 * 268.435456 + 1.0) * kMicrosecond, 1e-12);
  profile.gemm.wave_quantisation.value = 0.0;
  EXPECT_NEAR(gemm_seconds(gemm, pencil_gpu(), profile), (1.25 * 268.435456 + 1.0) * kMicrosecond, 1e-12);
}

// 2·256·256·1024 FLOP; a k overhead of 1024 doubles them, a sustained factor of 1/2 doubles the time again.
TEST(Roofline, OverheadOfKAndSustainedFactorMultiply) {
  const Gemm gemm{.m = 256, .n = 256, .k = 1024};
  KernelProfile profile = pencil_profile();
  profile.gemm.k_overhead.value = 1024.0;
  profile.gemm.sustained.value = 0.5;
  EXPECT_NEAR(gemm_seconds(gemm, pencil_gpu(), profile), (4 * 268.435456 + 1.0) * kMicrosecond, 1e-12);
}

// k = 1: 2·(256 + 256 + 256·256) B = 132096 B at 50 GB/s = 2.64192 us beats 0.262 us of arithmetic.
TEST(Roofline, AThinProductIsLimitedByItsBytes) {
  const Gemm gemm{.m = 256, .n = 256, .k = 1};
  EXPECT_NEAR(gemm_seconds(gemm, pencil_gpu(), pencil_profile()), (2.64192 + 1.0) * kMicrosecond, 1e-12);
}

TEST(Roofline, Fp8UsesItsOwnPeakAndAMissingOneIsTheUsersFault) {
  const Gemm gemm{.m = 256, .n = 256, .k = 1024, .precision = kernel::Precision::fp8};
  spec::Gpu gpu = pencil_gpu();
  gpu.low_precision_efficiency.value = 1.0;
  EXPECT_NEAR(gemm_seconds(gemm, gpu, pencil_profile()), (134.217728 + 1.0) * kMicrosecond, 1e-12);
  gpu.low_precision_efficiency.value = 0.5;
  EXPECT_NEAR(gemm_seconds(gemm, gpu, pencil_profile()), (268.435456 + 1.0) * kMicrosecond, 1e-12);
  EXPECT_THROW((void)peak_rate(pencil_gpu(), kernel::Precision::nvfp4), RangeError);
}

TEST(Roofline, BlockScaledProductsNeedTheUnitsThatCameWithFp4) {
  const spec::Gpu hopper = pencil_gpu();  // fp8 and no fp4
  EXPECT_TRUE(has_rate(hopper, kernel::Precision::fp8));
  EXPECT_FALSE(has_rate(hopper, kernel::Precision::mxfp8));
  EXPECT_FALSE(has_rate(hopper, kernel::Precision::nvfp4));
  spec::Gpu blackwell = hopper;
  blackwell.fp4 = hopper.fp8;
  EXPECT_TRUE(has_rate(blackwell, kernel::Precision::mxfp8));
  EXPECT_TRUE(has_rate(blackwell, kernel::Precision::nvfp4));
}

// 2 heads of 512x512 pairs, 4·128·524288 = 268.4 MFLOP at 0.5 TFLOP/s; backward 2.5 times that with 3 launches.
TEST(Roofline, FullAttentionRunsAtItsEfficiency) {
  Attention a{.heads = 2, .kv_heads = 2, .head_dim = 128, .queries = 512, .keys = 512, .pairs = 512 * 512};
  EXPECT_NEAR(attention_seconds(a, pencil_gpu(), pencil_profile()), (536.870912 + 1.0) * kMicrosecond, 1e-12);
  a.direction = Direction::backward;
  EXPECT_NEAR(attention_seconds(a, pencil_gpu(), pencil_profile()), (2.5 * 536.870912 + 3.0) * kMicrosecond, 1e-12);
}

// Half of the square costs half the work at 0.8 of the rate (512·511/2 pairs are 1/2 − 1/1024 of it); head size 64
// has half the products at half the rate, so the same time.
TEST(Roofline, MaskAndHeadSizeHaveTheirOwnRates) {
  Attention a{.heads = 2, .kv_heads = 2, .head_dim = 128, .queries = 512, .keys = 512, .pairs = 512 * 511 / 2};
  const double masked = 536.870912 * (0.5 - 1.0 / 1024.0) / 0.8;
  EXPECT_NEAR(attention_seconds(a, pencil_gpu(), pencil_profile()), (masked + 1.0) * kMicrosecond, 1e-12);
  a.head_dim = 64;
  EXPECT_NEAR(attention_seconds(a, pencil_gpu(), pencil_profile()), (masked + 1.0) * kMicrosecond, 1e-12);
}

// A diagonal of 512 rows works 128 masked keys each: 512·511/2 + 512·128 = 196352 pairs of the 262144 that take
// 536.9 us. A rectangle without a mask loses nothing; no more than the
// whole rectangle is worked; 1024 more keys in front of the diagonal are crossed by none of its tiles.
TEST(Roofline, TilesOfTheDiagonalAreWorkedWhole) {
  Attention a{.heads = 2, .kv_heads = 2, .head_dim = 128, .queries = 512, .keys = 512, .pairs = 512 * 511 / 2};
  KernelProfile profile = pencil_profile();
  for (AttentionProfile& entry : profile.attention) {
    entry.masked_keys.value = 128.0;
    entry.masked_factor.value = 1.0;
  }
  const double square = 536.870912;
  EXPECT_NEAR(attention_seconds(a, pencil_gpu(), profile), (square * 196352 / 262144 + 1.0) * kMicrosecond, 1e-12);
  Attention longer = a;
  longer.keys += 1024;
  longer.pairs += 512 * 1024;
  EXPECT_NEAR(attention_seconds(longer, pencil_gpu(), profile) - attention_seconds(a, pencil_gpu(), profile),
              2.0 * square * kMicrosecond, 1e-12);
  a.pairs = 512 * 512;
  EXPECT_NEAR(attention_seconds(a, pencil_gpu(), profile), (square + 1.0) * kMicrosecond, 1e-12);
  a.pairs = 512 * 511 / 2;
  for (AttentionProfile& entry : profile.attention) {
    entry.masked_keys.value = 1024.0;
    entry.masked_factor.value = 0.8;
  }
  EXPECT_NEAR(attention_seconds(a, pencil_gpu(), profile), (square + 1.0) * kMicrosecond, 1e-12);
}

// 512 keys per row against 512 saturation keys: half the rate, twice the time.
TEST(Roofline, HalfOfTheRateAtTheSaturationLength) {
  const Attention a{.heads = 2, .kv_heads = 2, .head_dim = 128, .queries = 512, .keys = 512, .pairs = 512 * 512};
  KernelProfile profile = pencil_profile();
  for (AttentionProfile& entry : profile.attention) {
    entry.saturation_keys.value = 512.0;
  }
  EXPECT_NEAR(attention_seconds(a, pencil_gpu(), profile), (2 * 536.870912 + 1.0) * kMicrosecond, 1e-12);
}

// One head of 128 rows is one tile: three of four SMs idle, 4·128·128·512 FLOP at a quarter of 0.5 TFLOP/s.
TEST(Roofline, OneTileOccupiesOneSm) {
  const Attention a{.heads = 1, .kv_heads = 1, .head_dim = 128, .queries = 128, .keys = 512, .pairs = 128 * 512};
  EXPECT_NEAR(attention_seconds(a, pencil_gpu(), pencil_profile()), (4 * 67.108864 + 1.0) * kMicrosecond, 1e-12);
}

// 1 MB at 50 GB/s = 20 us, three launches.
TEST(Roofline, MemoryBoundIsBandwidthAndLaunches) {
  const MemoryBound kernel{.traffic = Bytes(1'000'000), .launches = 3};
  EXPECT_NEAR(memory_bound_seconds(kernel, pencil_gpu(), pencil_profile()), 23.0 * kMicrosecond, 1e-15);
  // Durations are rounded up to a picosecond.
  EXPECT_NEAR(seconds(make_cost_model(pencil_gpu(), pencil_profile())->time(kernel)), 23.0 * kMicrosecond, 1.5e-12);
}

// A part of another power limit than its profile's: half of the rate of products; 80 of 100 GB/s instead of half.
TEST(Roofline, APartSaysWhatItHoldsOfItsProfilesRates) {
  spec::Gpu gpu = pencil_gpu();
  gpu.sustained_efficiency.value = 0.5;
  gpu.bandwidth_efficiency = spec::Sourced<double>{.value = 0.8};
  const Gemm gemm{.m = 256, .n = 256, .k = 1024};
  EXPECT_NEAR(gemm_seconds(gemm, gpu, pencil_profile()), (2 * 268.435456 + 1.0) * kMicrosecond, 1e-12);
  const MemoryBound kernel{.traffic = Bytes(1'000'000)};
  EXPECT_NEAR(memory_bound_seconds(kernel, gpu, pencil_profile()), (12.5 + 1.0) * kMicrosecond, 1e-15);
}

TEST(Roofline, NoWorkIsALaunch) {
  const Attention nothing{.heads = 2, .kv_heads = 2, .head_dim = 128, .queries = 128, .keys = 128, .pairs = 0};
  EXPECT_EQ(make_cost_model(pencil_gpu(), pencil_profile())->time(nothing), Duration(1'000'000));
  EXPECT_EQ(make_cost_model(pencil_gpu(), pencil_profile())->time(Gemm{}), Duration(1'000'000));
}

// 1024 rows, 8 heads of 128, blocks that hold a quarter of the square: at half the peak of 1 TFLOP/s and masked_factor
// 0.8 their pairs cost 4·128·8·2^18 / (0.5·0.8) ps, and what the mask hides inside them changes nothing.
TEST(Attention, BlockSparseKernelsCostTheirWholeBlocks) {
  kernel::Attention attention{.heads = 8,
                              .kv_heads = 8,
                              .head_dim = 128,
                              .queries = 1024,
                              .keys = 1024,
                              .pairs = 1 << 17,
                              .computed_pairs = 1 << 18};
  const double whole = attention_seconds(attention, pencil_gpu(), pencil_profile());
  EXPECT_NEAR(whole, 1e-6 + 4.0 * 128 * 8 * (1 << 18) / 0.4 * 1e-12, 1e-9);
  attention.pairs = 1 << 16;
  EXPECT_EQ(attention_seconds(attention, pencil_gpu(), pencil_profile()), whole);
}

}  // namespace
}  // namespace ulysim::cost
