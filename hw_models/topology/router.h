#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hw_models/topology/plan.h"

namespace ulysim::topology {

/// Shortest routes by number of hops; among equals, the one whose hops were added first. Routes from one rank to
/// all others are searched together, once, when first asked for; the answer never depends on what was asked before.
class Router {
 public:
  Router(const std::vector<Hop>& hops, Vertex vertices, std::vector<Port> ports);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// InternalError when the two are not connected.
  [[nodiscard]] std::span<const LinkId> route(RankId from, RankId to) const;

 private:
  struct Graph;
  struct Row {
    std::once_flag searched{};
    std::vector<std::uint32_t> begin{};  ///< into links, by destination rank, and one past the last
    std::vector<LinkId> links{};
  };
  void search(std::size_t from, Row& row) const;

  std::unique_ptr<const Graph> graph_;
  std::vector<Port> ports_;
  std::unique_ptr<Row[]> rows_;  ///< by source rank; filled once, under `searched`
};

}  // namespace ulysim::topology
