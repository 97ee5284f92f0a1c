#include "sim/scenario/lengths.h"

#include <algorithm>
#include <cmath>

#include "sim/base/mix.h"

namespace ulysim::scenario {
namespace {

/// e^x by its series near 0 and squaring: no library call whose last bits differ between machines.
double exponential(double x) {
  constexpr int kHalvings = 10;
  constexpr int kTerms = 8;  // |x| < 64: the argument of the series is under 1/16
  const double small = x / (1 << kHalvings);
  double sum = 1.0;
  for (int term = kTerms; term > 0; --term) {
    sum = 1.0 + sum * small / term;
  }
  for (int i = 0; i < kHalvings; ++i) {
    sum *= sum;
  }
  return sum;
}

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}

  /// In [0, 1).
  double uniform() {
    constexpr double kStep = 1.0 / 9007199254740992.0;  // 2^-53
    return static_cast<double>(next() >> 11U) * kStep;
  }
  double normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) {
      sum += uniform();
    }
    return sum;
  }

 private:
  std::uint64_t next() { return mixed(seed_ ^ mixed(count_++)); }

  std::uint64_t seed_;
  std::uint64_t count_{};
};

double draw(const LengthDistribution& d, Draws& draws) {
  switch (d.kind) {
    case LengthDistribution::Kind::constant:
      return d.mean;
    case LengthDistribution::Kind::uniform:
      return static_cast<double>(d.min) + draws.uniform() * static_cast<double>(d.max - d.min + 1) - 0.5;
    case LengthDistribution::Kind::lognormal:
      // The mean of e^(σz) is e^(σ²/2).
      return d.mean * exponential(d.sigma * draws.normal() - d.sigma * d.sigma / 2.0);
  }
  return d.mean;
}

}  // namespace

std::vector<std::int64_t> draw_documents(const LengthDistribution& distribution, std::int64_t pack_to) {
  Draws draws(distribution.seed);
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  while (end < pack_to && static_cast<std::int64_t>(ends.size()) <= kMostDocuments) {
    const double length = std::clamp(draw(distribution, draws), static_cast<double>(distribution.min),
                                     static_cast<double>(std::min(distribution.max, pack_to)));
    end = std::min(pack_to, end + std::lround(length));
    ends.push_back(end);
  }
  return ends;
}

}  // namespace ulysim::scenario
