#pragma once

#include "sim/results/sweep_result.h"

namespace ulysim::reports {

/// 2 × 3 points of two plans by hand: Ulysses wins short sequences, ring long ones; the longest fits nowhere on one
/// node, and Ulysses cannot run on two.
inline results::SweepResult sweep_example() {
  using results::Fit;
  results::SweepResult sweep{
      .name = "example",
      .axes = {{"cluster.nodes", {"1", "2"}}, {"training.sequence_length", {"131072", "1048576", "4194304"}}},
      .plans = {"ulysses=all", "ring=all"}};
  const auto figures = [](Fit fit, double speed) {
    return results::SweepFigures{.fit = fit,
                                 .step_time_s = 131072.0 / speed,
                                 .tokens_per_s_per_gpu = speed,
                                 .mfu = speed / 4000.0,
                                 .peak_gpu_memory_gib = 40.25,
                                 .peak_host_memory_gib_per_node = 512.0,
                                 .exposed_communication_s = 0.5,
                                 .bottleneck = "attention kernels (61% of the step)"};
  };
  const auto add = [&](std::size_t node, std::size_t length, results::SweepPlan ulysses, results::SweepPlan ring) {
    sweep.points.push_back({.at = {node, length}, .plans = {std::move(ulysses), std::move(ring)}});
  };
  add(0, 0, {"ulysses=8", figures(Fit::yes, 2000.0), ""}, {"ring=8", figures(Fit::yes, 1900.0), ""});
  add(0, 1, {"ulysses=8", figures(Fit::risky, 900.0), "risky: 78.9 of 79.1 GiB"},
      {"ring=8", figures(Fit::yes, 1000.0), ""});
  add(0, 2, {"ulysses=8", figures(Fit::no, 250.0), "does not fit: 92.0 of 79.1 GiB"},
      {"ring=8", figures(Fit::no, 300.0), "does not fit: 90.0 of 79.1 GiB"});
  for (std::size_t length = 0; length < 3; ++length) {
    add(1, length, {"ulysses=16", {}, "28 heads do not divide by 16"}, {"ring=16", figures(Fit::yes, 800.0), ""});
  }
  return sweep;
}

}  // namespace ulysim::reports
