#include "sim/engine/refine.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "sim/engine/adjacency.h"

namespace ulysim::engine {
namespace {

using Signature = std::vector<std::uint64_t>;

struct ContentHash {
  std::size_t operator()(const Signature& signature) const {
    std::uint64_t h = 0xcbf29ce484222325U;
    for (const std::uint64_t word : signature) {
      h = (h ^ word) * 0x100000001b3U;
      h ^= h >> 29U;
    }
    return static_cast<std::size_t>(h);
  }
};

/// Numbers signatures by first appearance; compared by content, never visited in the order of the hash.
class Palette {
 public:
  std::uint32_t colour_of(const Signature& signature) {
    const auto found = colours_.find(signature);
    if (found != colours_.end()) {
      return found->second;
    }
    const auto fresh = static_cast<std::uint32_t>(colours_.size());
    colours_.emplace(signature, fresh);
    return fresh;
  }
  [[nodiscard]] std::size_t size() const { return colours_.size(); }
  void clear() { colours_.clear(); }

 private:
  std::unordered_map<Signature, std::uint32_t, ContentHash> colours_;
};

constexpr std::uint64_t pack(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32U) | low;
}

class Refiner {
 public:
  Refiner(const TrafficGraph& graph, const topology::Topology& topology, std::vector<std::uint32_t> start)
      : graph_(graph) {
    colours_.rank = std::move(start);
    start_units();
    start_transfers();
    start_links(topology);
    units_of_rank_ = Adjacency(colours_.rank.size(), graph.members.size());
    units_of_rank_.fill([&](auto add) {
      for (std::uint32_t u = 0; u < graph.units.size(); ++u) {
        for (std::size_t m = graph.units[u].members_begin; m < graph.units[u].members_end; ++m) {
          add(graph.members[m].rank.index(), pack(graph.members[m].part, u));
        }
      }
    });
    transfers_of_link_ = transfers_by_link(graph, topology.links().size());
  }

  Colours run() {
    std::size_t before = 0;
    for (std::size_t now = round(); now != before; now = round()) {
      before = now;
    }
    return std::move(colours_);
  }

 private:
  void start_units() {
    for (const Unit& unit : graph_.units) {
      scratch_ = {unit.pattern, unit.divisor, unit.steps, unit.members_end - unit.members_begin,
                  static_cast<std::uint64_t>(unit.fabric)};
      colours_.unit.push_back(palette_.colour_of(scratch_));
    }
    palette_.clear();
  }
  void start_transfers() {
    for (const UnitTransfer& t : graph_.transfers) {
      scratch_ = {t.step, t.repeat, t.chunks, static_cast<std::uint64_t>(t.fabric)};
      colours_.transfer.push_back(palette_.colour_of(scratch_));
    }
    palette_.clear();
  }
  void start_links(const topology::Topology& topology) {
    for (const topology::Link& link : topology.links()) {
      scratch_ = {static_cast<std::uint64_t>(link.kind), std::bit_cast<std::uint64_t>(link.capacity.value())};
      colours_.link.push_back(palette_.colour_of(scratch_));
    }
    palette_.clear();
  }

  /// Recolours all four kinds once; returns the number of colours.
  std::size_t round() {
    std::size_t colours = 0;
    colours += recolour(colours_.transfer, [this](std::size_t t) {
      const UnitTransfer& transfer = graph_.transfers[t];
      scratch_.push_back(colours_.unit[transfer.unit]);
      for (std::size_t k = transfer.links_begin; k < transfer.links_end; ++k) {
        scratch_.push_back(colours_.link[graph_.transfer_links[k].index()]);
      }
      return std::size_t{2};
    });
    colours += recolour(colours_.link, [this](std::size_t l) {
      for (const std::uint64_t t : transfers_of_link_.of(l)) {
        scratch_.push_back(colours_.transfer[t]);
      }
      return std::size_t{1};
    });
    colours += recolour(colours_.unit, [this](std::size_t u) {
      const Unit& unit = graph_.units[u];
      // Members lead with an odd word, transfers with an even one, so that the two never mix.
      for (std::size_t m = unit.members_begin; m < unit.members_end; ++m) {
        const Member& member = graph_.members[m];
        scratch_.push_back(pack(2 * member.part + 1, colours_.rank[member.rank.index()]));
      }
      for (std::size_t t = unit.transfers_begin; t < unit.transfers_end; ++t) {
        scratch_.push_back(colours_.transfer[t]);
      }
      return std::size_t{1};
    });
    colours += recolour(colours_.rank, [this](std::size_t r) {
      for (const std::uint64_t entry : units_of_rank_.of(r)) {
        const auto part = static_cast<std::uint32_t>(entry >> 32U);
        scratch_.push_back(pack(part, colours_.unit[entry & 0xffffffffU]));
      }
      return std::size_t{1};
    });
    return colours;
  }

  /// `neighbours(i)` appends the colours around thing i and says from which word on their order means nothing.
  template <class Neighbours>
  std::size_t recolour(std::vector<std::uint32_t>& colours, Neighbours neighbours) {
    palette_.clear();
    fresh_.resize(colours.size());
    for (std::size_t i = 0; i < colours.size(); ++i) {
      scratch_.assign(1, colours[i]);
      const std::size_t unordered = neighbours(i);
      std::sort(scratch_.begin() + static_cast<std::ptrdiff_t>(unordered), scratch_.end());
      fresh_[i] = palette_.colour_of(scratch_);
    }
    colours.swap(fresh_);
    return palette_.size();
  }

  const TrafficGraph& graph_;
  Colours colours_;
  Adjacency units_of_rank_;
  Adjacency transfers_of_link_;
  Palette palette_;
  Signature scratch_;
  std::vector<std::uint32_t> fresh_;
};

std::vector<std::uint32_t> counting(std::size_t size) {
  std::vector<std::uint32_t> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

}  // namespace

Colours refine(const TrafficGraph& graph, const topology::Topology& topology, std::vector<std::uint32_t> start) {
  return Refiner(graph, topology, std::move(start)).run();
}

Colours all_distinct(const TrafficGraph& graph, const topology::Topology& topology) {
  return {.rank = counting(topology.ranks()),
          .unit = counting(graph.units.size()),
          .transfer = counting(graph.transfers.size()),
          .link = counting(topology.links().size())};
}

}  // namespace ulysim::engine
