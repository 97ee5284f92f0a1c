#include "hw_models/topology/router.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <utility>

#include "sim/base/check.h"

namespace ulysim::topology {
namespace {

constexpr std::uint32_t kNoHop = 0xFFFF'FFFF;

struct HopIndex {
  std::uint32_t value{};
};
using Adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, HopIndex>;

/// Remembers by which hop the search first reached each vertex. Vertices are met in order of distance, and out-edges
/// in order of insertion, which makes the choice among equal routes a function of the plan alone.
class FirstHop : public boost::default_bfs_visitor {
 public:
  explicit FirstHop(std::vector<std::uint32_t>& by) : by_(&by) {}
  template <class Edge>
  void tree_edge(Edge edge, const Adjacency& graph) const {
    (*by_)[boost::target(edge, graph)] = graph[edge].value;
  }

 private:
  std::vector<std::uint32_t>* by_;
};

}  // namespace

struct Router::Graph {
  explicit Graph(Vertex vertices) : adjacency(vertices) {}
  Adjacency adjacency;
  std::vector<Hop> hops{};
};

Router::Router(const std::vector<Hop>& hops, Vertex vertices, std::vector<Port> ports)
    : ports_(std::move(ports)), rows_(std::make_unique<Row[]>(ports_.size())) {
  auto graph = std::make_unique<Graph>(vertices);
  graph->hops = hops;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    boost::add_edge(hops[i].from, hops[i].to, HopIndex{static_cast<std::uint32_t>(i)}, graph->adjacency);
  }
  graph_ = std::move(graph);
}

Router::~Router() = default;

void Router::search(std::size_t from, Row& row) const {
  std::vector<std::uint32_t> by(boost::num_vertices(graph_->adjacency), kNoHop);
  boost::breadth_first_search(graph_->adjacency, ports_[from].out, boost::visitor(FirstHop(by)));
  row.begin.push_back(0);
  for (std::size_t to = 0; to < ports_.size(); ++to) {
    if (to != from) {
      const auto first = static_cast<std::ptrdiff_t>(row.links.size());
      for (Vertex at = ports_[to].in; at != ports_[from].out; at = graph_->hops[by[at]].from) {
        ULYSIM_CHECK(by[at] != kNoHop, "no route from rank {} to rank {}", from, to);
        row.links.push_back(graph_->hops[by[at]].link);
      }
      std::reverse(row.links.begin() + first, row.links.end());
    }
    row.begin.push_back(static_cast<std::uint32_t>(row.links.size()));
  }
  row.links.shrink_to_fit();
}

std::span<const LinkId> Router::route(RankId from, RankId to) const {
  ULYSIM_CHECK(from.index() < ports_.size() && to.index() < ports_.size(), "route from rank {} to rank {} of {}",
               from.index(), to.index(), ports_.size());
  Row& row = rows_[from.index()];
  std::call_once(row.searched, [&] { search(from.index(), row); });
  const std::uint32_t begin = row.begin[to.index()];
  return std::span<const LinkId>(row.links).subspan(begin, row.begin[to.index() + 1] - begin);
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
  out.router_ = std::make_shared<const Router>(plan.hops, plan.vertices, std::move(plan.ports));
  out.links_ = std::move(plan.links);
  out.to_host_ = std::move(plan.to_host);
  out.from_host_ = std::move(plan.from_host);
  out.host_memory_ = std::move(plan.host_memory);
  return out;
}

}  // namespace ulysim::topology
