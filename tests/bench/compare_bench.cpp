// How long the main job takes, whole and in parts. The parts are what to look at when the whole gets slower.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "sim/scenario/scenario.h"
#include "sim/study/machine.h"
#include "sim/study/simulate.h"
#include "sim/study/study.h"

namespace ulysim {
namespace {

scenario::Scenario load(const char* name) {
  // The build tree's data folder: catalog and scenarios side by side.
  const std::filesystem::path data = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "share/ulysim";
  return scenario::load_scenario(data / "scenarios/runs" / name, data, {});
}

void load_scenario(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(load("llama3-8b-1m-8xh100.yaml"));
  }
}
BENCHMARK(load_scenario)->Unit(benchmark::kMillisecond);

void compare(benchmark::State& state, const char* name) {
  const scenario::Scenario scenario = load(name);
  for (auto _ : state) {
    benchmark::DoNotOptimize(study::compare(scenario, {}));
  }
}
BENCHMARK_CAPTURE(compare, one_node, "llama3-8b-1m-8xh100.yaml")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compare, four_nodes, "llama3-8b-1m-32xh100.yaml")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compare, thirty_two_nodes, "ulysses-paper-gpt7b-256xa100.yaml")->Unit(benchmark::kMillisecond);

void stage(benchmark::State& state, study::Stage last) {
  const scenario::Scenario scenario = load("llama3-8b-1m-8xh100.yaml");
  const study::Machine machine = study::build_machine(scenario);
  for (auto _ : state) {
    benchmark::DoNotOptimize(study::run_stages(scenario, machine, scenario.plans.front(), last));
  }
}
BENCHMARK_CAPTURE(stage, logical_graph, study::Stage::logical)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(stage, parallel_graph, study::Stage::parallel)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(stage, timeline, study::Stage::timeline)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ulysim
