// Are the rates max-min fair on problems nobody chose? Seeded; the seed of a failing case is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/network/problems.h"

namespace ulysim::network::testing {
namespace {

constexpr std::uint32_t kSeeds = 2000;
constexpr double kRounding = 1e-12;

std::vector<double> loads(const Problem& problem, const std::vector<double>& rates) {
  std::vector<double> load(problem.capacities.size(), 0.0);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    for (const Crossing& crossing : problem.classes[i]) {
      load[crossing.link] += crossing.flows * rates[i];
    }
  }
  return load;
}

TEST(MaxMinProperty, no_link_above_capacity_and_every_flow_has_its_bottleneck) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Problem problem = random_problem(random, 30, 60);
    const auto rates = solve(problem);
    const auto load = loads(problem, rates);
    std::vector<double> fastest(load.size(), 0.0);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      for (const Crossing& crossing : problem.classes[i]) {
        fastest[crossing.link] = std::max(fastest[crossing.link], rates[i]);
      }
    }
    for (std::size_t link = 0; link < load.size(); ++link) {
      ASSERT_LE(load[link], problem.capacities[link] * (1 + kRounding));
    }
    for (std::size_t i = 0; i < rates.size(); ++i) {
      ASSERT_TRUE(std::any_of(problem.classes[i].begin(), problem.classes[i].end(),
                              [&](const Crossing& crossing) {
                                return load[crossing.link] >= problem.capacities[crossing.link] * (1 - kRounding) &&
                                       rates[i] >= fastest[crossing.link] * (1 - kRounding);
                              }))
          << "flow " << i << " at " << rates[i] << " could grow";
    }
  }
}

// Among all feasible rates the max-min fair ones are the greatest when sorted and compared from the smallest on. Some
// order of filling links yields them, so trying every order and keeping the greatest feasible outcome needs no
// insight into which link comes first.
std::vector<double> by_enumeration(const Problem& problem) {
  std::vector<std::size_t> order(problem.capacities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<double> best;
  std::vector<double> best_sorted;
  do {
    std::vector<double> rates(problem.classes.size(), -1.0);
    for (const std::size_t link : order) {
      double left = problem.capacities[link];
      std::vector<std::size_t> waiting;
      for (std::size_t i = 0; i < rates.size(); ++i) {
        for (const Crossing& crossing : problem.classes[i]) {
          if (crossing.link == link && rates[i] >= 0.0) {
            left -= rates[i];
          } else if (crossing.link == link) {
            waiting.push_back(i);
          }
        }
      }
      for (const std::size_t i : waiting) {
        rates[i] = std::max(0.0, left / static_cast<double>(waiting.size()));
      }
    }
    const auto load = loads(problem, rates);
    bool feasible = true;
    for (std::size_t link = 0; link < load.size(); ++link) {
      feasible = feasible && load[link] <= problem.capacities[link] * (1 + kRounding);
    }
    auto sorted = rates;
    std::sort(sorted.begin(), sorted.end());
    // Rounding must not decide: take a new best only when it is greater by more.
    bool greater = best.empty();
    for (std::size_t k = 0; !greater && k < sorted.size(); ++k) {
      if (sorted[k] < best_sorted[k] * (1 - kRounding)) {
        break;
      }
      greater = sorted[k] > best_sorted[k] * (1 + kRounding);
    }
    if (feasible && greater) {
      best = rates;
      best_sorted = sorted;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(MaxMinProperty, equals_the_best_of_all_filling_orders) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Problem problem = random_problem(random, 5, 8);
    const auto rates = solve(problem);
    const auto expected = by_enumeration(problem);
    ASSERT_EQ(rates.size(), expected.size());
    for (std::size_t i = 0; i < rates.size(); ++i) {
      ASSERT_NEAR(rates[i], expected[i], 1e-11) << "flow " << i;
    }
  }
}

TEST(MaxMinProperty, capacities_times_k_give_rates_times_k) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Problem problem = random_problem(random, 30, 60);
    const auto rates = solve(problem);
    for (double& capacity : problem.capacities) {
      capacity *= 1024.0;
    }
    const auto by_power_of_two = solve(problem);
    for (double& capacity : problem.capacities) {
      capacity *= 1e9 / 3.0;
    }
    const auto by_any_factor = solve(problem);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      ASSERT_EQ(by_power_of_two[i], rates[i] * 1024.0);
      ASSERT_NEAR(by_any_factor[i], rates[i] * 1024.0 * (1e9 / 3.0), by_any_factor[i] * kRounding);
    }
  }
}

TEST(MaxMinProperty, order_of_flows_and_names_of_links_do_not_change_a_bit) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Problem problem = random_problem(random, 30, 60);
    const auto rates = solve(problem);
    std::vector<std::uint32_t> link_to(problem.capacities.size());
    std::iota(link_to.begin(), link_to.end(), 0U);
    std::shuffle(link_to.begin(), link_to.end(), random);
    std::vector<std::size_t> flow_to(rates.size());
    std::iota(flow_to.begin(), flow_to.end(), std::size_t{0});
    std::shuffle(flow_to.begin(), flow_to.end(), random);
    Problem shuffled{.capacities = problem.capacities, .classes = problem.classes};
    for (std::size_t link = 0; link < link_to.size(); ++link) {
      shuffled.capacities[link_to[link]] = problem.capacities[link];
    }
    for (std::size_t i = 0; i < rates.size(); ++i) {
      auto crossings = problem.classes[i];
      for (Crossing& crossing : crossings) {
        crossing.link = link_to[crossing.link];
      }
      std::reverse(crossings.begin(), crossings.end());
      shuffled.classes[flow_to[i]] = crossings;
    }
    const auto again = solve(shuffled);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      ASSERT_EQ(again[flow_to[i]], rates[i]) << "flow " << i;
    }
  }
}

// A machine with a cyclic symmetry of order k. Link class a has k/d members (d = sharing); member i of a flow class
// crosses, for each of its (a, offset), member (i + offset) mod (k/d) of a. So each member link of a carries d members
// of the flow class per offset: that is the folded crossing, and its unfolding spells out every member.
TEST(MaxMinProperty, folded_equals_unfolded_bit_for_bit) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::uint32_t k = 1U << below(random, 5);
    const std::uint32_t link_classes = 1 + below(random, 8);
    Problem folded;
    Problem unfolded;
    std::vector<std::uint32_t> members(link_classes);
    std::vector<std::uint32_t> first_member(link_classes);
    for (std::uint32_t a = 0; a < link_classes; ++a) {
      const double capacity = 1e9 * (1 + below(random, 400)) / 7.0;
      members[a] = k >> below(random, 3);
      members[a] = std::max(members[a], 1U);
      first_member[a] = static_cast<std::uint32_t>(unfolded.capacities.size());
      folded.capacities.push_back(capacity);
      unfolded.capacities.insert(unfolded.capacities.end(), members[a], capacity);
    }
    const std::uint32_t flow_classes = 1 + below(random, 10);
    for (std::uint32_t f = 0; f < flow_classes; ++f) {
      std::vector<Crossing> crossings;
      std::vector<std::vector<Crossing>> explicit_members(k);
      for (std::uint32_t a = 0; a < link_classes; ++a) {
        const std::uint32_t offsets = below(random, 3);  // 0, 1 or 2 members of a, next to each other
        const std::uint32_t start = below(random, k);
        const std::uint32_t used = f % link_classes == a ? std::max(offsets, 1U) : offsets;
        const std::uint32_t distinct = std::min(used, members[a]);
        if (distinct == 0) {
          continue;
        }
        crossings.push_back({.link = a, .flows = distinct * (k / members[a])});
        for (std::uint32_t i = 0; i < k; ++i) {
          for (std::uint32_t o = 0; o < distinct; ++o) {
            explicit_members[i].push_back({.link = first_member[a] + (i + start + o) % members[a], .flows = 1});
          }
        }
      }
      folded.classes.push_back(crossings);
      unfolded.classes.insert(unfolded.classes.end(), explicit_members.begin(), explicit_members.end());
    }
    const auto rates = solve(folded);
    const auto every = solve(unfolded);
    for (std::size_t i = 0; i < every.size(); ++i) {
      ASSERT_EQ(every[i], rates[i / k]) << "member " << i % k << " of flow class " << i / k;
    }
  }
}

}  // namespace
}  // namespace ulysim::network::testing
