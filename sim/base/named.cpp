#include "sim/base/named.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace ulysim {
namespace {

constexpr std::size_t kMostListed = 12;

/// Edit distance in which swapping two neighbours counts once (optimal string alignment), since that is the
/// commonest slip of the fingers.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t shorter = std::min(name.size(), candidate.size());
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t limit = std::max<std::size_t>(1, longer / 3);
    // The difference in length is a lower bound; it also keeps a megabyte of nonsense from being compared.
    if (longer - shorter > limit) {
      continue;
    }
    const std::size_t distance = edit_distance(name, candidate);
    if (distance <= limit && distance < longer && (best == nullptr || distance < best_distance)) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::string() : *best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  if (const std::string near = nearest(name, candidates); !near.empty()) {
    return fmt::format("; did you mean '{}'?", near);
  }
  if (candidates.empty()) {
    return {};
  }
  const auto shown = candidates.first(std::min(candidates.size(), kMostListed));
  return fmt::format("; known: {}{}", fmt::join(shown, ", "), shown.size() < candidates.size() ? ", …" : "");
}

}  // namespace ulysim
