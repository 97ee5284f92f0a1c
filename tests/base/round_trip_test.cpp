// Question: does text written by exact() always read back to the very same value?

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "sim/base/format.h"
#include "sim/base/parse_quantity.h"

namespace ulysim {
namespace {

constexpr std::uint64_t kSeed = 20240607;
constexpr int kDraws = 20'000;

template <class T>
void expect_identity(Parsed<T> (*parse)(std::string_view), T value) {
  const Parsed<T> back = parse(exact(value));
  ASSERT_EQ(back.index(), 0U) << std::get<1>(back) << ", seed " << kSeed;
  ASSERT_EQ(std::get<0>(back).value(), value.value()) << exact(value) << ", seed " << kSeed;
}

/// Every magnitude equally likely, since uniform draws would hardly ever be small or round.
std::int64_t draw_integer(std::mt19937_64& random) {
  const std::uint64_t bits = random() >> (1 + random() % 63);
  const std::uint64_t round[]{1, 1'000, 1'024, 1'000'000, 1'048'576};
  const std::uint64_t factor = round[random() % 5];
  const auto most = static_cast<std::uint64_t>(INT64_MAX);
  return static_cast<std::int64_t>(bits <= most / factor ? bits * factor : bits);
}

/// Any positive finite double, by its bits; half of them short decimals as people write them.
double draw_real(std::mt19937_64& random) {
  if (random() % 2 == 0) {
    return static_cast<double>(1 + random() % 100'000) * (random() % 2 == 0 ? 1e7 : 1e-3);
  }
  const auto value = std::bit_cast<double>(random() & 0x7FFF'FFFF'FFFF'FFFFULL);
  return std::isfinite(value) ? value : 1.0;
}

TEST(RoundTrip, Bytes) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_identity(parse_bytes, Bytes(draw_integer(random))));
  }
}

TEST(RoundTrip, Duration) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_identity(parse_duration, Duration(draw_integer(random))));
  }
}

TEST(RoundTrip, Bandwidth) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_identity(parse_bandwidth, Bandwidth(draw_real(random))));
  }
}

TEST(RoundTrip, FlopRate) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_identity(parse_flop_rate, FlopRate(draw_real(random))));
  }
}

TEST(RoundTrip, Edges) {
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{1}, INT64_MAX, INT64_MAX - 1}) {
    expect_identity(parse_bytes, Bytes(value));
    expect_identity(parse_duration, Duration(value));
  }
  for (const double value : {0.0, 5e-324, 2.2250738585072014e-308, 999.9999999999999, 1e18, 1.7976931348623157e308}) {
    expect_identity(parse_bandwidth, Bandwidth(value));
    expect_identity(parse_flop_rate, FlopRate(value));
  }
}

}  // namespace
}  // namespace ulysim
