#include "sim/base/quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace ulysim {
namespace {

template <class F>
std::string range_error(F&& f) {
  try {
    static_cast<void>(f());
  } catch (const RangeError& e) {
    return e.what();
  }
  return "no RangeError";
}

TEST(Quantity, SameKindArithmetic) {
  EXPECT_EQ(Bytes(3) + Bytes(4) - Bytes(2), Bytes(5));
  EXPECT_EQ(Bytes(3) * 4, Bytes(12));
  EXPECT_DOUBLE_EQ(Bytes(3) / Bytes(4), 0.75) << "a ratio is a number, not an integer division";
}

TEST(TransferTime, IsExactWhereTheFiguresAre) {
  // 4096 B / 50 GB/s = 81.92 ns = 81,920 ps
  EXPECT_EQ(transfer_time(Bytes(4096), Bandwidth(50e9), "link"), Duration(81'920));
  // 450 GB at 450 GB/s: one second
  EXPECT_EQ(transfer_time(Bytes(450'000'000'000), Bandwidth(450e9), "link"), Duration(1'000'000'000'000));
}

TEST(TransferTime, RoundsUpToWholePicoseconds) {
  // 1 B / 3 TB/s = 0.33 ps
  EXPECT_EQ(transfer_time(Bytes(1), Bandwidth(3e12), "link"), Duration(1));
  EXPECT_EQ(transfer_time(Bytes(0), Bandwidth(3e12), "link"), Duration(0));
}

TEST(TransferTime, RefusesRatesThatNeverEndAndNamesTheLink) {
  EXPECT_EQ(range_error([] { return transfer_time(Bytes(1), Bandwidth(0.0), "link 3 nic"); }),
            "link 3 nic: a bandwidth of 0 B/s is not above zero");
  EXPECT_NE(range_error([] { return transfer_time(Bytes(1), Bandwidth(-1.0), "x"); }), "no RangeError");
  EXPECT_NE(range_error([] { return transfer_time(Bytes(1), Bandwidth(std::nan("")), "x"); }), "no RangeError");
}

TEST(TransferTime, TheBoundOfAHundredDaysIsProbedOnBothSides) {
  // 100 days = 8,640,000 s; at 1 B/s that is so many bytes
  EXPECT_EQ(transfer_time(Bytes(8'640'000), Bandwidth(1.0), "x"), Duration(8'640'000'000'000'000'000));
  EXPECT_EQ(range_error([] { return transfer_time(Bytes(8'640'001), Bandwidth(1.0), "link 7"); }),
            "link 7: 8.24 MiB at 1 B/s take longer than 100 days");
}

TEST(TransferTime, NegativeBytesAreOurBug) {
  EXPECT_THROW(static_cast<void>(transfer_time(Bytes(-1), Bandwidth(1.0), "x")), InternalError);
}

TEST(ComputeTime, IsWorkOverRateRoundedUp) {
  // 2 PFLOP at 1 PFLOP/s: two seconds; one FLOP at 989 TFLOP/s: 0.001 ps
  EXPECT_EQ(compute_time(Flops(2e15), FlopRate(1e15), "gemm"), Duration(2'000'000'000'000));
  EXPECT_EQ(compute_time(Flops(1.0), FlopRate(989e12), "gemm"), Duration(1));
  EXPECT_EQ(range_error([] { return compute_time(Flops(1.0), FlopRate(0.0), "gemm qkv"); }),
            "gemm qkv: a rate of 0 FLOP/s is not above zero");
  EXPECT_NE(range_error([] { return compute_time(Flops(1e300), FlopRate(1.0), "x"); }), "no RangeError");
}

TEST(DurationFromSeconds, CoversZeroToAHundredDays) {
  EXPECT_EQ(duration_from_seconds(0.0, "x"), Duration(0));
  EXPECT_EQ(duration_from_seconds(1e-15, "x"), Duration(1)) << "finite work never takes no time";
  EXPECT_EQ(duration_from_seconds(kLongestSeconds, "x"), Duration(8'640'000'000'000'000'000));
  for (const double wrong : {-1e-12, 8'640'001.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(static_cast<void>(duration_from_seconds(wrong, "x")), RangeError) << wrong;
  }
}

TEST(Instant, MovesByDurationsAndChecksTheSum) {
  EXPECT_EQ(Instant(5) + Duration(7), Instant(12));
  EXPECT_EQ(Instant(12) - Instant(5), Duration(7));
  EXPECT_THROW(static_cast<void>(Instant(std::numeric_limits<std::int64_t>::max()) + Duration(1)), RangeError);
}

}  // namespace
}  // namespace ulysim
