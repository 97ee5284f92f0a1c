#include "sim/study/length_search.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/check.h"
#include "sim/study/simulate.h"

namespace ulysim::study {

namespace {

/// One memory of the two: what is used of it at a length.
struct Use {
  double bytes{};
  double capacity{};
};

std::array<Use, 2> uses(const results::Figures& f) {
  const auto use = [](Bytes bytes, Bytes capacity) {
    return Use{static_cast<double>(bytes.value()), static_cast<double>(capacity.value())};
  };
  return {use(f.peak_gpu_memory, f.gpu_memory_capacity),
          use(f.peak_host_memory_per_node, f.host_memory_capacity_per_node)};
}

/// Tries in which the bracket must have halved, else the next one is its middle.
constexpr int kPatience = 3;
/// Four times as long: no step upwards is larger, as simulating a far too long sequence in tiles takes its time.
constexpr std::size_t kStride = 512;

}  // namespace

LengthSearch::LengthSearch(const scenario::Scenario& scenario, const Machine& machine, scenario::PlanEntry entry)
    : scenario_(scenario), machine_(machine), entry_(std::move(entry)), lengths_(legal_lengths(scenario, entry_)) {}

scenario::PlanEntry LengthSearch::entry_at(std::size_t index) const {
  scenario::PlanEntry entry = entry_;
  entry.plan.sequence_length = lengths_.tokens(index);
  entry.plan.lengths.clear();  // a legal length needs no filling
  return entry;
}

const Probe& LengthSearch::probe(std::size_t index) {
  const auto [found, added] = probes_.try_emplace(index);
  if (added) {
    try {
      found->second.plan = simulate(scenario_, machine_, entry_at(index), {.detail = Detail::memory});
    } catch (const RangeError& error) {
      found->second.out_of_range = error.what();
    }
  }
  return found->second;
}

/// Tokens at which the line through two lengths reaches a capacity, the smaller of both memories; none when neither
/// grows, or a length has no figures.
std::optional<double> LengthSearch::where_full(std::size_t from, std::size_t to) const {
  const Probe& a = probes_.at(from);
  const Probe& b = probes_.at(to);
  if (!a.plan.figures || !b.plan.figures) {
    return std::nullopt;
  }
  const auto low = uses(*a.plan.figures);
  const auto high = uses(*b.plan.figures);
  const auto x = static_cast<double>(lengths_.tokens(from));
  const double width = static_cast<double>(lengths_.tokens(to)) - x;
  std::optional<double> full;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const double slope = (high.at(i).bytes - low.at(i).bytes) / width;
    if (slope > 0) {
      const double at = x + (low.at(i).capacity - low.at(i).bytes) / slope;
      full = full ? std::min(*full, at) : at;
    }
  }
  return full;
}

/// A length to try strictly between one that fits (0: none known) and one that does not (count + 1: none known).
std::size_t LengthSearch::guess(std::size_t fits, std::size_t too_long) {
  const bool bounded = too_long <= lengths_.count();
  std::optional<double> tokens;
  if (fits > 0 && bounded) {
    tokens = where_full(fits, too_long);
  } else {
    // One side only: the line through the two known lengths nearest to the limit, or through the origin.
    const auto nearest = fits > 0 ? std::prev(probes_.end()) : probes_.begin();
    if (probes_.size() > 1) {
      const auto other = fits > 0 ? std::prev(nearest) : std::next(nearest);
      tokens = where_full(std::min(nearest->first, other->first), std::max(nearest->first, other->first));
    } else if (nearest->second.plan.figures) {
      auto share = static_cast<double>(kStride);
      for (const Use& use : uses(*nearest->second.plan.figures)) {
        share = use.bytes > 0 ? std::min(share, use.capacity / use.bytes) : share;
      }
      tokens = static_cast<double>(lengths_.tokens(nearest->first)) * share;
    }
  }
  if (!tokens) {
    return bounded ? fits + (too_long - fits) / 2 : std::min(fits + kStride, lengths_.count());
  }
  const auto bound = static_cast<double>(lengths_.tokens(lengths_.count()));
  const std::size_t below = lengths_.index_below(static_cast<std::int64_t>(std::clamp(*tokens, 0.0, bound)));
  return std::clamp(below, fits + 1, bounded ? too_long - 1 : std::min(fits + kStride, lengths_.count()));
}

std::size_t LengthSearch::longest(std::size_t start) {
  std::size_t fits = 0;
  std::size_t too_long = lengths_.count() + 1;
  std::size_t next = std::clamp<std::size_t>(start, 1, lengths_.count());
  std::size_t width = too_long;
  int tries = 0;
  while (true) {
    (probe(next).fits() ? fits : too_long) = next;
    if (too_long - fits == 1) {
      return fits;
    }
    if (too_long - fits <= width / 2) {
      width = too_long - fits;
      tries = 0;
    }
    const bool bounded = too_long <= lengths_.count();
    next = bounded && ++tries > kPatience ? fits + (too_long - fits) / 2 : guess(fits, too_long);
  }
}

}  // namespace ulysim::study
