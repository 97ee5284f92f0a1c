// Which question this answers: does a sweep become the scenarios that its author meant, and is every mistake in it told
// with its place?

#include "sim/scenario/grid.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/scenario/small.h"

namespace ulysim::scenario {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using workload::MeshAxis;

/// A folder with one sweep in it.
class Grids : public testing::Test {
 protected:
  Grids() {
    std::string name = (fs::temp_directory_path() / "ulysim-grid-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("cannot make a temporary folder");
    }
    folder_ = name;
  }
  ~Grids() override { fs::remove_all(folder_); }

  [[nodiscard]] Grid grid(const std::string& text, const LoadOptions& options = {}) const {
    std::ofstream(folder_ / "s.yaml", std::ios::binary) << text;
    return load_grid(folder_ / "s.yaml", data_folder(), options);
  }

  /// What the loader complains about, a line each, with the folder left out.
  [[nodiscard]] std::string complaints(const std::string& text) const {
    try {
      (void)grid(text);
      return {};
    } catch (const InputError& error) {
      std::string out;
      for (const Diagnostic& found : error.diagnostics()) {
        out += to_string(found) + "\n";
      }
      for (std::size_t at = out.find(folder_.string()); at != std::string::npos; at = out.find(folder_.string())) {
        out.erase(at, folder_.string().size() + 1);
      }
      return out;
    }
  }

  fs::path folder_;
};

/// A sweep of one node with these axes and plans, each a YAML flow value; the base stands in lines 2 to 4.
std::string sweep(const std::string& axes, const std::string& plans = "[{}]") {
  return "base:\n  model: llama-3.1-8b\n  cluster: {node: dgx-h100}\n  training: {sequence_length: 16Ki}\naxes: " +
         axes + "\nplans: " + plans + "\n";
}

TEST_F(Grids, EveryCombinationIsAPointTheLastAxisFastest) {
  const Grid g = grid(sweep("{cluster.nodes: [1, 2], training.sequence_length: [8Ki, 16Ki, 1M]}", "[{ulysses: all}]"));
  EXPECT_EQ(g.points(), 6U);
  EXPECT_THAT(g.at(4), ElementsAre(1, 1));
  EXPECT_THAT(g.axes[1].names, ElementsAre("8192", "16384", "1000000"));
  EXPECT_THAT(g.plans, ElementsAre("ulysses=all"));
  Library library(data_folder());
  const Scenario s = scenario_at(g, 4, 0, library);
  EXPECT_EQ(s.cluster.gpus, 16);
  EXPECT_EQ(s.plans.front().plan.sequence_length, 16384);
  EXPECT_EQ(s.plans.front().plan.mesh.size(MeshAxis::ulysses), 16) << "all of two nodes";
}

TEST_F(Grids, AnyKeyMayBeAnAxisAlsoOfTheNetworkAndOfOnePlan) {
  const Grid g =
      grid(sweep("{model: [llama-3.1-8b, qwen3-0.6b], cluster.network.nic_bandwidth: [100Gb/s, 400Gb/s], "
                 "plans.1.zero: [1, 3], training.attention.mask: [causal, {sliding_window: 4096}]}",
                 "[{ulysses: 8}, {ring: 8}]"));
  EXPECT_EQ(g.points(), 16U);
  EXPECT_THAT(g.axes[3].names, ElementsAre("causal", "{sliding_window: 4096}"));
  Library library(data_folder());
  const Scenario first = scenario_at(g, 8, 0, library);
  EXPECT_EQ(first.model_name, "qwen3-0.6b");
  EXPECT_EQ(first.cluster.network.nic_bandwidth, Bandwidth(12.5e9)) << "100 Gb/s";
  EXPECT_EQ(scenario_at(g, 8, 1, library).plans.front().plan.zero, 1);
  EXPECT_EQ(first.plans.front().plan.zero, 3) << "the other plan keeps its own";
}

TEST_F(Grids, ValuesMayHaveNamesOfTheirOwn) {
  const Grid g = grid(sweep("{cluster: {4 GPUs: {node: dgx-h100, gpus: 4}, 16 GPUs: {node: dgx-h100, nodes: 2}}}"));
  EXPECT_THAT(g.axes[0].names, ElementsAre("4 GPUs", "16 GPUs"));
  Library library(data_folder());
  EXPECT_EQ(scenario_at(g, 0, 0, library).cluster.gpus, 4);
  EXPECT_EQ(scenario_at(g, 1, 0, library).cluster.gpus, 16);
}

TEST_F(Grids, RangesHoldBothEndsWhereTheyAreMet) {
  const auto values = [&](const std::string& range) {
    return grid(sweep(fmt::format("{{cluster.price_per_gpu_hour: {}}}", range))).axes[0].names;
  };
  EXPECT_THAT(values("{from: 1Ki, to: 8Ki, factor: 2}"), ElementsAre("1024", "2048", "4096", "8192"));
  EXPECT_THAT(values("{from: 1Ki, to: 5000, factor: 2}"), ElementsAre("1024", "2048", "4096"));
  EXPECT_THAT(values("{from: 10, to: 30, step: 10}"), ElementsAre("10", "20", "30"));
  EXPECT_THAT(values("{from: 0.1, to: 0.3, step: 0.1}"), ElementsAre("0.1", "0.2", "0.3")) << "no 0.30000000000000004";
  EXPECT_THAT(values("{from: 2, to: 4, factor: 1.2}"), ElementsAre("2", "3"))
      << "2, 2.4, 2.88, 3.456: whole numbers stay whole, and none stands twice";
  EXPECT_THAT(grid(sweep("{cluster.network.nic_bandwidth: {from: 100Gb/s, to: 400Gb/s, factor: 2}}")).axes[0].names,
              ElementsAre("100Gb/s", "200Gb/s", "400Gb/s"));
}

TEST_F(Grids, TheBaseMayBeAFileAndOverridesLieOverIt) {
  std::ofstream(folder_ / "base.yaml") << study("{sequence_length: 16Ki}", "[{ulysses: 8}, {ring: 8}]");
  const Grid g = grid("sweep: two\nbase: base.yaml\naxes: {cluster.nodes: [1, 2]}\n",
                      {.overrides = {{.text = "training.zero=1"}}});
  EXPECT_EQ(g.name, "two");
  EXPECT_THAT(g.plans, ElementsAre("ulysses=8", "ring=8")) << "the base's";
  Library library(data_folder());
  EXPECT_EQ(scenario_at(g, 1, 1, library).plans.front().plan.zero, 1);
}

TEST_F(Grids, TheSameGridHasTheSameFingerprintAndAnotherAnother) {
  const std::string text = sweep("{cluster.nodes: [1, 2]}");
  EXPECT_EQ(fingerprint(grid(text)), fingerprint(grid(text + "# a comment\n")));
  EXPECT_NE(fingerprint(grid(text)), fingerprint(grid(sweep("{cluster.nodes: [1, 4]}"))));
  EXPECT_NE(fingerprint(grid(text)), fingerprint(grid(text, {.overrides = {{.text = "training.zero=1"}}})));
}

TEST_F(Grids, AValueIsWrongOnlyWhenItIsSoInAllItsCombinations) {
  EXPECT_EQ(complaints(sweep("{cluster.nodes: [1, 2]}", "[{ulysses: 16}, {ring: 8}]")), "")
      << "ulysses 16 runs on two nodes";
  EXPECT_EQ(complaints(sweep("{cluster.nodes: [1, 2]}", "[{ulysses: 32}, {ring: 8}]")),
            "s.yaml:6:9: error: 'plans[0]': ulysses 32 does not divide 8 GPUs\n");
  EXPECT_EQ(complaints(sweep("{cluster.nodes: [1, 2], training.global_batch: [8, 16, 17]}")),
            "s.yaml:6:9: error: 'plans[0]': global_batch 17 is not a multiple of micro_batch 1 × data 8\n")
      << "8 goes with one node";
}

TEST_F(Grids, MistakesAreToldOnceWithTheirPlace) {
  EXPECT_EQ(complaints(sweep("{cluster.node: [dgx-h100, dgx-h1000], training.sequence_lenght: [1Ki]}")),
            "s.yaml:5:33: error: unknown node 'dgx-h1000'; did you mean 'dgx-h100'?\n"
            "s.yaml:5:45: error: unknown key 'training.sequence_lenght'; did you mean 'sequence_length'?\n");
  EXPECT_THAT(complaints(sweep("{training.sequence_length: [1Ki, many]}")),
              HasSubstr("s.yaml:5:40: error: 'training.sequence_length': cannot read 'many'"));
  EXPECT_THAT(complaints(sweep("{cluster.nodes: [1]}", "[{ulysses: 8}, {ulysses: 8}]")),
              HasSubstr("s.yaml:6:23: error: 'plans[1]': there is a plan 'ulysses=8' already"));
}

TEST_F(Grids, AxesThatAreNoneAreRefused) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"{}", "'axes': at least one key"},
      {"[1, 2]", "'axes': at least one key"},
      {"{training.zero: []}", "'axes.training.zero': at least one value is needed"},
      {"{training.zero: {}}", "'axes.training.zero': at least one value is needed"},
      {"{training.zero: 3}", "expected a list of values, or a range"},
      {"{training.zero: [1, 1]}", "'1' stands twice"},
      {"{training.zero: {from: 1, to: 3}}", "a range has 'from', 'to' and either 'step' or 'factor'"},
      {"{training.zero: {from: 1, to: 3, step: 1, factor: 2}}", "either 'step' or 'factor'"},
      {"{training.zero: {from: 1, to: 3, step: 0}}", "'0' is no number above 0"},
      {"{training.zero: {from: 3, to: 1, step: 1}}", "'to' is below 'from'"},
      {"{training.zero: {from: 1, to: 3, factor: 1}}", "'factor' is a plain number above 1"},
      {"{training.zero: {from: 1, to: 3, stride: 1}}", "unknown key 'axes.training.zero.stride'"},
      {"{cluster.network.nic_bandwidth: {from: 100Gb/s, to: 50GB/s, factor: 2}}", "one unit"},
      {"{plans: [[{}]]}", "'axes.plans': is the same at every point"},
      {"{plans.1.zero: [1]}", "'axes.plans.1.zero': the last plan is plans.0"},
      {"{training..zero: [1]}", "'training..zero' is no key"},
      {"{training.zero.deep: [1]}", "expected a count"}};
  for (const auto& [axes, message] : wrong) {
    EXPECT_THAT(complaints(sweep(axes)), HasSubstr(message)) << axes;
    EXPECT_THAT(complaints(sweep(axes)), testing::StartsWith("s.yaml:")) << axes;
  }
}

TEST_F(Grids, TooManyPointsAreRefusedWithTheirNumberAndNotMade) {
  EXPECT_EQ(
      complaints(sweep("{cluster.nodes: {from: 1, to: 1000, step: 1}, cluster.gpus: {from: 1, to: 1000, step: 1}, "
                       "training.zero: {from: 1, to: 1000, step: 1}}")),
      "s.yaml:5:7: error: 'axes': 1,000 × 1,000 × 1,000 values with 1 plans are 1000000000 simulations; a sweep "
      "has at most 1,000,000\n");
  EXPECT_THAT(complaints(sweep("{training.sequence_length: {from: 1, to: 1000000000, step: 1}}")),
              HasSubstr("1,000,000,000 values; a sweep has at most 1,000,000 simulations"));
  EXPECT_THAT(complaints(sweep("{training.sequence_length: {from: 1, to: 1G, factor: 1.000001}}")),
              HasSubstr("over 1,000,000 values"));
}

TEST_F(Grids, WhatIsMissingIsToldTogether) {
  const std::string text = complaints("bsae: x.yaml\n");
  EXPECT_THAT(text, HasSubstr("missing key 'base'"));
  EXPECT_THAT(text, HasSubstr("'axes': at least one key"));
  EXPECT_THAT(text, HasSubstr("unknown key 'bsae'; did you mean 'base'?"));
  EXPECT_THAT(complaints("base: nowhere.yaml\naxes: {cluster.nodes: [1]}\n"),
              HasSubstr("s.yaml:1:7: error: 'base': there is no file"));
}

TEST(ShippedSweeps, Load) {
  std::size_t found = 0;
  for (const auto& file : fs::directory_iterator(data_folder() / "scenarios" / "sweeps")) {
    EXPECT_GT(load_grid(file.path(), data_folder(), {}).points(), 10U) << file.path();
    ++found;
  }
  EXPECT_GE(found, 2U);
}

}  // namespace
}  // namespace ulysim::scenario
