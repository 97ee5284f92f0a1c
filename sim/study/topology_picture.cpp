#include "sim/study/topology_picture.h"

#include <algorithm>

namespace ulysim::study {

namespace {

constexpr std::size_t kDrawnNodes = 2;

/// By vertex: whether it is drawn.
std::vector<bool> drawn_vertices(const topology::Topology& topology) {
  const auto vertices = topology.vertices();
  std::vector<bool> drawn(vertices.size());
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    drawn[i] = vertices[i].node && *vertices[i].node < kDrawnNodes;
  }
  // Up from the nodes, switch by switch.
  for (bool grown = true; grown;) {
    grown = false;
    for (const topology::Link& link : topology.links()) {
      if (drawn[link.from.index()] && !drawn[link.to.index()] && !vertices[link.to.index()].node) {
        drawn[link.to.index()] = true;
        grown = true;
      }
    }
  }
  return drawn;
}

std::int64_t nodes_of(const topology::Topology& topology) {
  return static_cast<std::int64_t>(topology.node_of(RankId(topology.ranks() - 1))) + 1;
}

}  // namespace

Drawing draw(const topology::Topology& topology) {
  Drawing out;
  const std::vector<bool> drawn = drawn_vertices(topology);
  std::vector<std::uint32_t> index(drawn.size());
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (!drawn[i]) {
      continue;
    }
    const topology::Vertex& vertex = topology.vertices()[i];
    index[i] = static_cast<std::uint32_t>(out.picture.vertices.size());
    results::TopologyPicture::Vertex& added = out.picture.vertices.emplace_back();
    added.name = vertex.name;
    added.kind = name(vertex.kind);
    if (vertex.node) {
      added.node = static_cast<std::int64_t>(*vertex.node);
    }
  }
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const topology::Link& link = topology.links()[i];
    if (drawn[link.from.index()] && drawn[link.to.index()]) {
      out.links.emplace_back(i);
      out.picture.links.push_back({.from = index[link.from.index()],
                                   .to = index[link.to.index()],
                                   .kind = name(link.kind),
                                   .capacity = link.capacity.value()});
    }
  }
  out.picture.omitted_nodes = std::max<std::int64_t>(0, nodes_of(topology) - std::int64_t{kDrawnNodes});
  return out;
}

std::vector<std::optional<std::uint32_t>> classes_of(const Drawing& drawing, const results::Timeline& timeline) {
  std::vector<std::optional<std::uint32_t>> out(drawing.links.size());
  for (std::size_t i = 0; i < timeline.links.size(); ++i) {
    for (const LinkId member : timeline.links[i].members) {
      const auto found = std::lower_bound(drawing.links.begin(), drawing.links.end(), member);
      if (found != drawing.links.end() && *found == member) {
        out[static_cast<std::size_t>(found - drawing.links.begin())] = static_cast<std::uint32_t>(i);
      }
    }
  }
  return out;
}

}  // namespace ulysim::study
