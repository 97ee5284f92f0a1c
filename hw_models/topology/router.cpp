#include "hw_models/topology/router.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/pending/queue.hpp>
#include <utility>

#include "sim/base/check.h"

namespace ulysim::topology {
namespace {

constexpr std::uint32_t kNoHop = 0xFFFF'FFFF;

struct HopIndex {
  std::uint32_t value{};
};
using Adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, HopIndex>;
using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;

/// Remembers by which hop the search first reached each vertex. Vertices are met in order of distance, and out-edges
/// in order of insertion, which makes the choice among equal routes a function of the plan alone.
class FirstHop : public boost::default_bfs_visitor {
 public:
  FirstHop(std::vector<std::uint32_t>& by, const std::vector<std::uint32_t>& local) : by_(&by), local_(&local) {}
  template <class Edge>
  void tree_edge(Edge edge, const Adjacency& graph) const {
    (*by_)[(*local_)[boost::target(edge, graph)]] = graph[edge].value;
  }

 private:
  std::vector<std::uint32_t>* by_;
  const std::vector<std::uint32_t>* local_;
};

}  // namespace

/// The graph of switches. It falls into parts (the fabric, and the inside of each node), and a search stays in one.
struct Router::Switches {
  struct Search {
    std::once_flag done{};
    std::vector<std::uint32_t> by{};  ///< hop that first reached each vertex of the part, by its index in the part
  };

  Switches(std::vector<Hop> all, std::size_t vertices)
      : adjacency(vertices), hops(std::move(all)), part(vertices), local(vertices), searches(new Search[vertices]) {
    Undirected both(vertices);
    for (std::size_t i = 0; i < hops.size(); ++i) {
      boost::add_edge(hops[i].from.index(), hops[i].to.index(), HopIndex{static_cast<std::uint32_t>(i)}, adjacency);
      boost::add_edge(hops[i].from.index(), hops[i].to.index(), both);
    }
    const std::size_t parts = boost::connected_components(both, part.data());
    size.resize(parts);
    for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
      local[vertex] = size[part[vertex]]++;
    }
  }

  void search(std::size_t from, std::vector<std::uint32_t>& by) const {
    by.assign(size[part[from]], kNoHop);
    std::vector<boost::default_color_type> colors(by.size(), boost::white_color);
    const auto color = boost::make_iterator_property_map(
        colors.begin(), boost::make_iterator_property_map(local.begin(), boost::identity_property_map()));
    boost::queue<std::size_t> queue;
    boost::breadth_first_visit(adjacency, from, queue, FirstHop(by, local), color);
  }

  /// Appends the links from one switch to another of its part.
  void append(std::size_t from, std::size_t to, std::vector<LinkId>& links) const {
    if (from == to) {
      return;
    }
    Search& one = searches[from];
    std::call_once(one.done, [&] { search(from, one.by); });
    const auto first = static_cast<std::ptrdiff_t>(links.size());
    for (std::size_t at = to; at != from; at = hops[one.by[local[at]]].from.index()) {
      ULYSIM_CHECK(one.by[local[at]] != kNoHop, "switch {} cannot be reached from switch {}", to, from);
      links.push_back(hops[one.by[local[at]]].link);
    }
    std::reverse(links.begin() + first, links.end());
  }

  Adjacency adjacency;
  std::vector<Hop> hops;
  std::vector<std::uint32_t> part;     ///< by vertex
  std::vector<std::uint32_t> local;    ///< index in its part, by vertex
  std::vector<std::uint32_t> size{};   ///< vertices, by part
  std::unique_ptr<Search[]> searches;  ///< by vertex searched from
};

Router::Router(const std::vector<Hop>& hops, std::size_t vertices, std::vector<Port> ports)
    : switches_(std::make_unique<const Switches>(hops, vertices)),
      ports_(std::move(ports)),
      rows_(std::make_unique<Row[]>(ports_.size())) {}

Router::~Router() = default;

std::vector<LinkId> Router::compose(std::size_t from, std::size_t to) const {
  if (from == to) {
    return {};
  }
  for (const Access& out : ports_[from].accesses) {
    for (const Access& in : ports_[to].accesses) {
      if (switches_->part[out.vertex.index()] == switches_->part[in.vertex.index()]) {
        std::vector<LinkId> links = out.up;
        switches_->append(out.vertex.index(), in.vertex.index(), links);
        links.insert(links.end(), in.down.begin(), in.down.end());
        return links;
      }
    }
  }
  ULYSIM_CHECK(false, "no route from rank {} to rank {}", from, to);
  return {};
}

std::span<const LinkId> Router::route(RankId from, RankId to) const {
  ULYSIM_CHECK(from.index() < ports_.size() && to.index() < ports_.size(), "route from rank {} to rank {} of {}",
               from.index(), to.index(), ports_.size());
  Row& row = rows_[from.index()];
  const std::scoped_lock lock(row.mutex);
  const auto [place, fresh] = row.routes.try_emplace(static_cast<std::uint32_t>(to.index()));
  if (fresh) {
    place->second = compose(from.index(), to.index());
  }
  return place->second;
}

std::span<const LinkId> Topology::route(RankId from, RankId to) const {
  return router_->route(from, to);
}

Topology assemble(Plan plan) {
  Topology out;
  for (const Port& port : plan.ports) {
    out.node_of_.push_back(port.node);
    out.local_of_.push_back(port.local);
  }
  out.router_ = std::make_shared<const Router>(plan.hops, plan.vertices.size(), std::move(plan.ports));
  out.links_ = std::move(plan.links);
  out.vertices_ = std::move(plan.vertices);
  out.to_host_ = std::move(plan.to_host);
  out.from_host_ = std::move(plan.from_host);
  out.to_nvme_ = std::move(plan.to_nvme);
  out.from_nvme_ = std::move(plan.from_nvme);
  out.host_memory_ = std::move(plan.host_memory);
  return out;
}

}  // namespace ulysim::topology
