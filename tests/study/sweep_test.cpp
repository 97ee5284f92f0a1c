// Which question this answers: is a sweep the studies of its points, whatever runs them and however many at once?

#include "sim/study/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>

#include "reports/sweep_json.h"
#include "sim/base/check.h"
#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Qwen3-0.6B (16 heads) on parts of a node and on two of them.
scenario::Grid small_grid() {
  for (const char* pass : {"data", "tensor", "ulysses", "ring", "checkpoint-offload"}) {
    tests::need_pass(pass);
  }
  std::string name = (fs::temp_directory_path() / "ulysim-sweep-XXXXXX").string();
  const int file = mkstemp(name.data());
  close(file);
  std::ofstream(name) << "base: {model: qwen3-0.6b, cluster: {node: dgx-h100}, training: {checkpoint_offload: cpu}}\n"
                         "axes: {cluster.nodes: [1, 2, 4], training.sequence_length: [16Ki, 1Mi, 64Mi]}\n"
                         "plans: [{ulysses: all}, {ring: all}, {tensor: 16}]\n";
  scenario::Grid grid = scenario::load_grid(name, data_folder(), {});
  fs::remove(name);
  return grid;
}

std::vector<std::size_t> all_points(const scenario::Grid& grid) {
  std::vector<std::size_t> points(grid.points());
  std::iota(points.begin(), points.end(), std::size_t{0});
  return points;
}

/// Every point as text, by its indices.
std::map<std::vector<std::size_t>, std::string> texts(const scenario::Grid& grid, std::size_t jobs) {
  std::map<std::vector<std::size_t>, std::string> out;
  sweep(grid, all_points(grid), {.data = data_folder(), .jobs = jobs},
        [&](const results::SweepPoint& point) { out[point.at] = reports::point_json(point); });
  return out;
}

TEST(Sweep, OneThreadAndFourGiveTheSame) {
  const scenario::Grid grid = small_grid();
  const auto one = texts(grid, 1);
  EXPECT_EQ(one.size(), 9U) << "every point, each once";
  EXPECT_EQ(one, texts(grid, 4));
}

TEST(Sweep, APointHasTheFiguresOfItsStudy) {
  const scenario::Grid grid = small_grid();
  scenario::Library library(data_folder());
  const results::SweepPoint point = simulate_point(grid, 0, library);
  const results::StudyResult study = compare(parse({.model = "qwen3-0.6b",
                                                    .training = "{sequence_length: 16Ki, checkpoint_offload: cpu}",
                                                    .plans = "[{ulysses: 8}, {ring: 8}]"}),
                                             {});
  for (std::size_t p = 0; p < 2; ++p) {
    EXPECT_EQ(point.plans[p].name, study.plans[p].name);
    EXPECT_EQ(point.plans[p].figures->step_time_s, seconds(study.plans[p].figures->step_time));
    EXPECT_EQ(point.plans[p].figures->peak_gpu_memory_gib, gibibytes(study.plans[p].figures->peak_gpu_memory));
    EXPECT_EQ(point.plans[p].figures->mfu, study.plans[p].figures->mfu);
  }
  EXPECT_EQ(results::winner(point), results::winner(study));
}

TEST(Sweep, WhatCannotRunSomewhereIsAValueWithItsReason) {
  const scenario::Grid grid = small_grid();
  scenario::Library library(data_folder());
  const results::SweepPoint one_node = simulate_point(grid, 0, library);
  EXPECT_FALSE(one_node.plans[2].figures) << "tensor 16 on 8 GPUs";
  EXPECT_THAT(one_node.plans[2].reason, HasSubstr("tensor 16 does not divide 8 GPUs"));
  const results::SweepPoint four_nodes = simulate_point(grid, 6, library);
  EXPECT_FALSE(four_nodes.plans[0].figures) << "16 heads over 32";
  EXPECT_THAT(four_nodes.plans[0].reason, HasSubstr("16 heads"));
  const results::SweepPoint longest = simulate_point(grid, 2, library);
  EXPECT_FALSE(longest.plans[0].fits()) << "64Mi tokens";
  EXPECT_THAT(longest.plans[0].reason, HasSubstr("does not fit"));
  EXPECT_EQ(results::winner(longest), std::nullopt);
}

TEST(Sweep, StopsWhenAskedAndLosesNoFinishedPoint) {
  const scenario::Grid grid = small_grid();
  std::stop_source source;
  std::size_t told = 0;
  sweep(grid, all_points(grid), {.data = data_folder(), .jobs = 2, .stop = source.get_token()},
        [&](const results::SweepPoint&) {
          ++told;
          source.request_stop();
        });
  EXPECT_GE(told, 1U);
  EXPECT_LE(told, 2U) << "the other thread's point was in work";
}

TEST(Sweep, AFailureOfTheListenerEndsTheSweep) {
  const scenario::Grid grid = small_grid();
  const auto fail = [](const results::SweepPoint&) { throw WorldError("disk full"); };
  EXPECT_THROW(sweep(grid, all_points(grid), {.data = data_folder(), .jobs = 3}, fail), WorldError);
}

}  // namespace
}  // namespace ulysim::study
