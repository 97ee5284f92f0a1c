// How long does a solve take? Arguments: flow classes, links. Not a ctest.
#include <benchmark/benchmark.h>

#include "tests/network/problems.h"

namespace ulysim::network::testing {
namespace {

Problem problem_of(benchmark::State& state) {
  std::mt19937 random(1);
  Problem problem;
  const auto links = static_cast<std::uint32_t>(state.range(1));
  for (std::uint32_t link = 0; link < links; ++link) {
    problem.capacities.push_back(1e9 * (1 + below(random, 12)));
  }
  problem.classes.resize(static_cast<std::size_t>(state.range(0)));
  for (auto& crossings : problem.classes) {
    const std::uint32_t first = below(random, links);
    for (std::uint32_t k = 0; k < 6; ++k) {
      crossings.push_back({.link = (first + 7 * k) % links, .flows = 1 + below(random, 8)});
    }
  }
  return problem;
}

void max_min_solve(benchmark::State& state) {
  const Problem problem = problem_of(state);
  MaxMin solver(problem.capacities);
  const std::vector<std::span<const Crossing>> views(problem.classes.begin(), problem.classes.end());
  std::vector<double> rates;
  for (auto _ : state) {
    solver.solve(views, rates);
    benchmark::DoNotOptimize(rates.data());
  }
}
BENCHMARK(max_min_solve)->Args({8, 32})->Args({64, 200})->Args({4096, 4096});

}  // namespace
}  // namespace ulysim::network::testing

BENCHMARK_MAIN();
