#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "hw_models/topology/plan.h"

namespace ulysim::topology {

/// A route is composed: up from one GPU to a switch, between switches, down to the other GPU. The GPUs' accesses are
/// tried in order of preference and the first pair that the switches connect is taken; between switches the route has
/// fewest hops, and among equals the one whose hops were added first. So it depends on the plan alone, never on what
/// was asked before, and only what is asked for costs time and memory.
class Router {
 public:
  Router(const std::vector<Hop>& hops, std::size_t vertices, std::vector<Port> ports);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// InternalError when the two are not connected.
  [[nodiscard]] std::span<const LinkId> route(RankId from, RankId to) const;

 private:
  struct Switches;
  struct Row {
    std::mutex mutex{};
    std::unordered_map<std::uint32_t, std::vector<LinkId>> routes{};  ///< by destination rank; spans point into it
  };
  [[nodiscard]] std::vector<LinkId> compose(std::size_t from, std::size_t to) const;

  std::unique_ptr<const Switches> switches_;
  std::vector<Port> ports_;
  std::unique_ptr<Row[]> rows_;  ///< by source rank
};

}  // namespace ulysim::topology
