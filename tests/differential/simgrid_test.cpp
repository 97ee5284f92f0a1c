// Does SimGrid, an independent flow simulator, see every flow complete when FlowNetwork does?
//
// Its CM02 model with bandwidth factor 1, no latency, no TCP window and no cross traffic is plain max-min sharing
// (Velho, Schnorr, Casanova and Legrand, ACM TOMACS 23(4), 2013). A process holds one SimGrid engine, so all problems
// live side by side in one simulation, each in a zone of its own.
#include <gtest/gtest.h>

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <map>
#include <string>

#include "sim/network/flow_network.h"
#include "tests/network/problems.h"

namespace ulysim::network::testing {
namespace {

namespace sg = simgrid::s4u;

struct Start {
  std::int64_t picoseconds{};
  double bytes{};
};

struct Case {
  Problem problem{};
  std::vector<Start> starts{};  ///< by flow, in order of time
  std::vector<double> ours{};   ///< completion of each flow, seconds
  std::vector<double> theirs{};
};

Case random_case(std::uint32_t seed) {
  std::mt19937 random(seed);
  Case result{.problem = random_problem(random, 8, 14)};
  std::int64_t at = 0;
  for (std::size_t i = 0; i < result.problem.classes.size(); ++i) {
    result.starts.push_back({.picoseconds = at, .bytes = 1e6 * (1 + below(random, 5000))});
    at += std::int64_t{1'000'000'000} * below(random, 300);  // whole milliseconds, some at once
  }
  for (double& capacity : result.problem.capacities) {
    capacity *= 1e9;
  }
  result.theirs.assign(result.starts.size(), 0.0);
  return result;
}

std::vector<double> simulate(const Case& problem) {
  FlowNetwork network(problem.problem.capacities);
  std::vector<double> finish(problem.starts.size(), 0.0);
  std::map<FlowNetwork::Handle, std::size_t> flow_of;
  std::vector<FlowNetwork::Handle> completed;
  std::size_t next_start = 0;
  while (true) {
    for (; next_start < finish.size() && Instant(problem.starts[next_start].picoseconds) == network.now();
         ++next_start) {
      flow_of[network.start(problem.problem.classes[next_start], problem.starts[next_start].bytes)] = next_start;
    }
    auto to = network.next_completion();
    if (next_start < finish.size()) {
      const Instant start(problem.starts[next_start].picoseconds);
      to = to ? std::min(*to, start) : start;
    }
    if (!to) {
      return finish;
    }
    completed.clear();
    network.advance(*to, completed);
    for (const auto handle : completed) {
      finish[flow_of.at(handle)] = seconds(network.now() - Instant{});
    }
  }
}

void simulate_with_simgrid(std::vector<Case>& cases) {
  std::vector<std::string> arguments{"simgrid_test",
                                     "--cfg=network/model:CM02",
                                     "--cfg=network/latency-factor:1",
                                     "--cfg=network/bandwidth-factor:1",
                                     "--cfg=network/weight-S:0",
                                     "--cfg=network/TCP-gamma:0",
                                     "--cfg=network/crosstraffic:0",
                                     "--cfg=surf/precision:1e-9",
                                     "--cfg=maxmin/precision:1e-9",
                                     "--log=root.thres:warning"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  auto argc = static_cast<int>(argv.size());
  sg::Engine engine(&argc, argv.data());
  auto* root = sg::create_full_zone("root");
  for (std::size_t c = 0; c < cases.size(); ++c) {
    Case& current = cases[c];
    const std::string prefix = "p" + std::to_string(c) + "-";
    auto* zone = sg::create_full_zone(prefix + "zone")->set_parent(root);
    std::vector<sg::Link*> links;
    for (std::size_t link = 0; link < current.problem.capacities.size(); ++link) {
      links.push_back(zone->create_link(prefix + "l" + std::to_string(link), current.problem.capacities[link])
                          ->set_latency(0.0)
                          ->seal());
    }
    for (std::size_t i = 0; i < current.starts.size(); ++i) {
      const std::string flow = prefix + std::to_string(i);
      auto* from = zone->create_host(flow + "-from", 1e9)->seal();
      auto* to = zone->create_host(flow + "-to", 1e9)->seal();
      std::vector<sg::LinkInRoute> route;
      for (const Crossing& crossing : current.problem.classes[i]) {
        route.emplace_back(links[crossing.link]);
      }
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
      const Start start = current.starts[i];
      sg::Actor::create(flow + "-sender", from, [flow, start] {
        static double payload = 0.0;
        sg::this_actor::sleep_until(static_cast<double>(start.picoseconds) / kPicosecondsPerSecond);
        sg::Mailbox::by_name(flow)->put(&payload, static_cast<std::uint64_t>(start.bytes));
      });
      double* finish = &current.theirs[i];
      sg::Actor::create(flow + "-receiver", to, [flow, finish] {
        sg::Mailbox::by_name(flow)->get<double>();
        *finish = sg::Engine::get_clock();
      });
    }
    zone->seal();
  }
  root->seal();
  engine.run();
}

TEST(SimGrid, sees_the_same_completions) {
  std::vector<Case> cases;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    cases.push_back(random_case(seed));
    cases.back().ours = simulate(cases.back());
  }
  simulate_with_simgrid(cases);
  for (std::size_t seed = 0; seed < cases.size(); ++seed) {
    for (std::size_t i = 0; i < cases[seed].ours.size(); ++i) {
      EXPECT_GT(cases[seed].ours[i], 0.0);
      EXPECT_NEAR(cases[seed].ours[i], cases[seed].theirs[i], 1e-6) << "seed " << seed << ", flow " << i;
    }
  }
}

}  // namespace
}  // namespace ulysim::network::testing
