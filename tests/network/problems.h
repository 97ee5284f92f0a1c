#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "sim/network/max_min.h"

namespace ulysim::network::testing {

/// A max-min problem that owns its crossings.
struct Problem {
  std::vector<double> capacities{};
  std::vector<std::vector<Crossing>> classes{};
};

[[nodiscard]] inline std::vector<double> solve(const Problem& problem) {
  MaxMin solver(problem.capacities);
  const std::vector<std::span<const Crossing>> views(problem.classes.begin(), problem.classes.end());
  std::vector<double> rates;
  solver.solve(views, rates);
  return rates;
}

/// std::uniform_int_distribution differs between libraries; a remainder does not.
[[nodiscard]] inline std::uint32_t below(std::mt19937& random, std::uint32_t bound) {
  return static_cast<std::uint32_t>(random() % bound);
}

/// Up to `links` links of 1 … 12 (so that shares often tie) and up to `flows` flows of one member over 1 … 4 links.
[[nodiscard]] inline Problem random_problem(std::mt19937& random, std::uint32_t links, std::uint32_t flows) {
  Problem problem;
  const std::uint32_t count = 1 + below(random, links);
  for (std::uint32_t link = 0; link < count; ++link) {
    problem.capacities.push_back(static_cast<double>(1 + below(random, 12)));
  }
  problem.classes.resize(1 + below(random, flows));
  for (auto& crossings : problem.classes) {
    const std::uint32_t length = 1 + below(random, 4);
    const std::uint32_t first = below(random, count);
    for (std::uint32_t k = 0; k < length && k < count; ++k) {
      crossings.push_back({.link = (first + k) % count, .flows = 1});
    }
  }
  return problem;
}

}  // namespace ulysim::network::testing
