#include "sim/engine/fold.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/adjacency.h"
#include "sim/engine/refine.h"
#include "sim/workload/shape.h"

namespace ulysim::engine {
namespace {

std::size_t count_of(const std::vector<std::uint32_t>& colours) {
  return colours.empty() ? 0 : std::size_t{*std::max_element(colours.begin(), colours.end())} + 1;
}

/// What work a rank does: its role, and its place on the ring where that matters.
std::vector<std::uint32_t> work_colours(const workload::OpGraph& graph, std::size_t ranks) {
  const bool by_ring = workload::work_depends_on_ring(graph);
  const std::int64_t rings = by_ring ? graph.mesh.size(workload::MeshAxis::ring) : 1;
  std::vector<std::uint32_t> colours;
  colours.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t ring = by_ring ? graph.mesh.coordinate(RankId(rank), workload::MeshAxis::ring) : 0;
    const auto role = static_cast<std::int64_t>(role_of(graph, RankId(rank)));
    colours.push_back(static_cast<std::uint32_t>(role * rings + ring));
  }
  return colours;
}

void add_ranks(const workload::OpGraph& graph, const Colours& colours, Folding& out) {
  out.class_of_rank = colours.rank;
  out.ranks.resize(count_of(colours.rank));
  for (std::size_t rank = 0; rank < colours.rank.size(); ++rank) {
    RankClass& rank_class = out.ranks[colours.rank[rank]];
    if (rank_class.members.empty()) {
      rank_class.representative = RankId(rank);
      rank_class.role = role_of(graph, RankId(rank));
    }
    rank_class.members.emplace_back(rank);
  }
}

void add_links(const Colours& colours, const topology::Topology& topology, Folding& out) {
  out.links.resize(count_of(colours.link));
  out.capacities.resize(out.links.size());
  for (std::size_t link = 0; link < colours.link.size(); ++link) {
    LinkClass& link_class = out.links[colours.link[link]];
    if (link_class.members.empty()) {
      link_class.representative = LinkId(link);
      out.capacities[colours.link[link]] = topology.links()[link].capacity.value();
    }
    link_class.members.emplace_back(link);
  }
}

/// By transfer colour, how many of its members cross one link of each class: counted on the representatives.
std::vector<std::vector<network::Crossing>> crossings_of(const TrafficGraph& graph, const Colours& colours,
                                                         const Folding& folding) {
  std::vector<std::vector<network::Crossing>> out(count_of(colours.transfer));
  const Adjacency transfers = transfers_by_link(graph, colours.link.size());
  std::vector<std::uint32_t> crossing;
  for (std::uint32_t link = 0; link < folding.links.size(); ++link) {
    crossing.clear();
    for (const std::uint64_t t : transfers.of(folding.links[link].representative.index())) {
      crossing.push_back(colours.transfer[t]);
    }
    std::sort(crossing.begin(), crossing.end());
    for (std::size_t i = 0; i < crossing.size();) {
      const std::size_t begin = i;
      while (i < crossing.size() && crossing[i] == crossing[begin]) {
        ++i;
      }
      out[crossing[begin]].push_back({.link = link, .flows = static_cast<std::uint32_t>(i - begin)});
    }
  }
  return out;
}

Transaction transaction_of(const TrafficGraph& graph, const Colours& colours, const Unit& unit,
                           const std::vector<std::vector<network::Crossing>>& crossings) {
  Transaction out{.divisor = unit.divisor, .total_steps = unit.steps, .fabric = unit.fabric};
  for (std::size_t m = unit.members_begin; m < unit.members_end; ++m) {
    out.participants.push_back(colours.rank[graph.members[m].rank.index()]);
  }
  std::sort(out.participants.begin(), out.participants.end());
  out.participants.erase(std::unique(out.participants.begin(), out.participants.end()), out.participants.end());
  std::vector<std::size_t> of_step;
  for (std::size_t t = unit.transfers_begin; t < unit.transfers_end;) {  // they stand step by step
    const UnitTransfer& first = graph.transfers[t];
    of_step.clear();
    for (; t < unit.transfers_end && graph.transfers[t].step == first.step; ++t) {
      of_step.push_back(t);
    }
    std::sort(of_step.begin(), of_step.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(colours.transfer[a], a) < std::pair(colours.transfer[b], b);
    });
    out.steps.push_back({.repeat = first.repeat});
    for (std::size_t i = 0; i < of_step.size(); ++i) {
      const std::uint32_t colour = colours.transfer[of_step[i]];
      if (i == 0 || colour != colours.transfer[of_step[i - 1]]) {
        const UnitTransfer& transfer = graph.transfers[of_step[i]];
        out.steps.back().flows.push_back(
            {.crossings = crossings[colour], .chunks = transfer.chunks, .fabric = transfer.fabric});
      }
    }
  }
  return out;
}

void add_patterns(const TrafficGraph& graph, const Colours& colours, Folding& out) {
  const auto crossings = crossings_of(graph, colours, out);
  for (const Pattern& pattern : graph.patterns) {
    out.patterns.push_back({.pattern = pattern});
    out.patterns.back().of_class.resize(out.ranks.size());
  }
  std::vector<bool> seen(count_of(colours.unit), false);
  for (std::size_t u = 0; u < graph.units.size(); ++u) {
    if (seen[colours.unit[u]]) {
      continue;
    }
    seen[colours.unit[u]] = true;
    PatternClasses& pattern = out.patterns[graph.units[u].pattern];
    const auto index = static_cast<std::uint32_t>(pattern.transactions.size());
    pattern.transactions.push_back(transaction_of(graph, colours, graph.units[u], crossings));
    for (const std::uint32_t rank_class : pattern.transactions.back().participants) {
      pattern.of_class[rank_class].push_back(index);
    }
  }
}

}  // namespace

Folding fold(const workload::OpGraph& graph, const topology::Topology& topology, FoldMode mode) {
  const TrafficGraph traffic = traffic_of(graph, topology);
  const Colours colours = mode == FoldMode::folded ? refine(traffic, topology, work_colours(graph, topology.ranks()))
                                                   : all_distinct(traffic, topology);
  Folding out;
  add_ranks(graph, colours, out);
  add_links(colours, topology, out);
  add_patterns(traffic, colours, out);
  return out;
}

}  // namespace ulysim::engine
