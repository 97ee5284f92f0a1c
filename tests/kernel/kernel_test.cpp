#include "hw_models/kernel/kernel.h"

#include <gtest/gtest.h>

namespace ulysim::kernel {
namespace {

// 2·m·n·k = 2·2·3·5 = 60; operands (2·5 + 5·3)·2 B = 50 B, result 2·3·2 B = 12 B.
TEST(Kernel, GemmCountsItsProductsAndItsOperandsOnce) {
  const Gemm gemm{.m = 2, .n = 3, .k = 5};
  EXPECT_EQ(executed_flops(gemm).value(), 60.0);
  EXPECT_EQ(model_flops(gemm).value(), 60.0);
  EXPECT_EQ(traffic(gemm).value(), 62);
  EXPECT_EQ(launches(gemm), 1);
}

TEST(Kernel, BatchMultipliesAndNarrowOperandsKeepABf16Result) {
  EXPECT_EQ(executed_flops(Gemm{.m = 2, .n = 3, .k = 5, .batch = 4}).value(), 240.0);
  EXPECT_EQ(traffic(Gemm{.m = 2, .n = 3, .k = 5, .batch = 4}).value(), 248);
  EXPECT_EQ(traffic(Gemm{.m = 2, .n = 3, .k = 5, .precision = Precision::fp8}).value(), 25 + 12);
  EXPECT_EQ(traffic(Gemm{.m = 2, .n = 3, .k = 5, .precision = Precision::nvfp4}).value(), 13 + 12);
}

// A causal square of 4 rows has 1+2+3+4 = 10 pairs. Forward 4·d·pairs = 4·8·10 = 320 per head, 2 sequences of
// 6 heads: 3840; backward 2.5 times that executed (five products for two) and twice that in the model's books.
TEST(Kernel, AttentionCountsUnmaskedPairs) {
  Attention attention{.sequences = 2, .heads = 6, .kv_heads = 3, .head_dim = 8, .queries = 4, .keys = 4, .pairs = 10};
  EXPECT_EQ(executed_flops(attention).value(), 3840.0);
  EXPECT_EQ(model_flops(attention).value(), 3840.0);
  EXPECT_EQ(launches(attention), 1);
  attention.direction = Direction::backward;
  EXPECT_EQ(executed_flops(attention).value(), 9600.0);
  EXPECT_EQ(model_flops(attention).value(), 7680.0);
  EXPECT_EQ(launches(attention), 3);
}

// A block-sparse kernel computes kept blocks whole: 16 pairs for the 10 that the mask lets through.
TEST(Kernel, WholeBlocksAreExecutedAndUnmaskedPairsAreTheModels) {
  const Attention attention{.heads = 1, .head_dim = 8, .queries = 4, .keys = 4, .pairs = 10, .computed_pairs = 16};
  EXPECT_EQ(executed_flops(attention).value(), 4.0 * 8 * 16);
  EXPECT_EQ(model_flops(attention).value(), 4.0 * 8 * 10);
}

// Forward moves Q, O (6 heads, 4 rows) and K, V (3 heads, 5 rows): 2 sequences · 8 · (2·24 + 2·15) · 2 B = 2496 B;
// backward moves four tensors on each side, twice as much.
TEST(Kernel, AttentionMovesItsTensorsOnce) {
  Attention attention{.sequences = 2, .heads = 6, .kv_heads = 3, .head_dim = 8, .queries = 4, .keys = 5, .pairs = 20};
  EXPECT_EQ(traffic(attention).value(), 2496);
  attention.direction = Direction::backward;
  EXPECT_EQ(traffic(attention).value(), 4992);
}

TEST(Kernel, MemoryBoundIsBytesAndLaunchesOnly) {
  const MemoryBound kernel{.traffic = Bytes(1000), .launches = 7};
  EXPECT_EQ(executed_flops(kernel).value(), 0.0);
  EXPECT_EQ(model_flops(kernel).value(), 0.0);
  EXPECT_EQ(traffic(kernel).value(), 1000);
  EXPECT_EQ(launches(kernel), 7);
}

// 64 Mi tokens, 128 heads: pairs near 2^51, FLOPs near 2^67, beyond int64 and exact enough in a double.
TEST(Kernel, LengthsOfTensOfMillionsDoNotOverflow) {
  const std::int64_t s = std::int64_t{1} << 26;
  const Attention a{.heads = 128, .kv_heads = 8, .head_dim = 128, .queries = s, .keys = s, .pairs = s * (s + 1) / 2};
  EXPECT_NEAR(executed_flops(a).value() / (4.0 * 128.0 * 128.0 * 0.5 * 4503599627370496.0), 1.0, 1e-7);
  EXPECT_GT(traffic(a).value(), 0);
}

TEST(Kernel, attention_counts_keys_by_their_width_and_values_by_theirs) {
  // DeepSeek-V3: queries and keys of 192, values of 128. 100 pairs of one head.
  Attention a{.heads = 1, .kv_heads = 1, .head_dim = 192, .v_head_dim = 128, .queries = 10, .keys = 10, .pairs = 100};
  EXPECT_EQ(executed_flops(a), Flops(2.0 * 100 * (192 + 128))) << "QKᵀ, PV";
  EXPECT_EQ(traffic(a), Bytes(2 * 10 * (192 + 192 + 128 + 128))) << "Q, K, V, O";
  a.direction = Direction::backward;
  EXPECT_EQ(executed_flops(a), Flops(2.0 * 100 * (3 * 192 + 2 * 128))) << "QKᵀ, dQ, dK; dP, dV";
  EXPECT_EQ(model_flops(a), Flops(2.0 * 2 * 100 * (192 + 128)));
  EXPECT_EQ(traffic(a), Bytes(2 * 2 * 10 * (192 + 192 + 128 + 128)));
  // Equal widths are the default.
  Attention same = a;
  same.head_dim = 128;
  Attention plain = same;
  plain.v_head_dim.reset();
  EXPECT_EQ(executed_flops(same), executed_flops(plain));
  EXPECT_EQ(traffic(same), traffic(plain));
}

}  // namespace
}  // namespace ulysim::kernel
