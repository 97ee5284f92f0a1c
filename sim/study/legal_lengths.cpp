#include "sim/study/legal_lengths.h"

#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/study/simulate.h"

namespace ulysim::study {

namespace {

constexpr std::int64_t kToADoubling = 256;
constexpr int kBits = 8;
/// A pass of a later day may divide tokens further than the degrees do, by up to this.
constexpr std::int64_t kMostCoarse = 1024;

/// The number of the largest k · 2^j <= units with k < 2 · kToADoubling.
std::size_t number_of(std::int64_t units) {
  if (units < 2 * kToADoubling) {
    return static_cast<std::size_t>(std::max<std::int64_t>(units, 0));
  }
  const int j = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(units))) - (kBits + 1);
  return static_cast<std::size_t>(j * kToADoubling + (units >> j));
}

}  // namespace

LegalLengths::LegalLengths(std::int64_t unit, std::int64_t longest) : unit_(unit), count_(number_of(longest / unit)) {
  ULYSIM_CHECK(count_ >= 1, "no multiple of {} is at most {}", unit, longest);
}

std::int64_t LegalLengths::tokens(std::size_t index) const {
  const auto i = static_cast<std::int64_t>(index);
  if (i < 2 * kToADoubling) {
    return i * unit_;
  }
  const std::int64_t j = i / kToADoubling - 1;
  return ((kToADoubling + i % kToADoubling) << j) * unit_;
}

std::size_t LegalLengths::index_below(std::int64_t tokens) const {
  return std::min(number_of(tokens / unit_), count_);
}

LegalLengths legal_lengths(const scenario::Scenario& scenario, const scenario::PlanEntry& entry) {
  const std::int64_t unit = entry.plan.sequence_unit();
  const std::int64_t longest = scenario::longest_sequence(scenario.model, entry.plan);
  scenario::PlanEntry tried = entry;
  for (std::int64_t more = 1; more <= kMostCoarse && unit * more <= longest; more *= 2) {
    tried.plan.sequence_length = unit * more;
    if (check(scenario, tried).empty()) {
      return {unit * more, longest};
    }
  }
  return {unit, longest};
}

}  // namespace ulysim::study
