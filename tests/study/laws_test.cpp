// Which question this answers: do the figures of every plan of every shipped scenario obey the laws of bookkeeping?

#include <gtest/gtest.h>

#include <map>

#include "sim/study/step_options.h"
#include "sim/workload/training_step.h"
#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

class Laws : public testing::TestWithParam<std::string> {
 protected:
  Laws() : scenario_(load_run(GetParam())), machine_(build_machine(scenario_)) {}
  scenario::Scenario scenario_;
  Machine machine_;
};

TEST_P(Laws, EverySumIsExact) {
  std::size_t plans = 0;
  for (const scenario::PlanEntry& entry : feasible(scenario_)) {
    SCOPED_TRACE(entry.plan.name);
    const results::Figures f = simulate(scenario_, machine_, entry, {}).figures.value();
    ++plans;
    Duration time{};
    for (const auto& part : f.breakdown) {
      EXPECT_GE(part.time.value(), 0) << part.name;
      time += part.time;
    }
    EXPECT_EQ(time, f.step_time) << "every picosecond counts once";

    Bytes memory{};
    for (const auto& kind : f.memory) {
      EXPECT_GE(kind.bytes.value(), 0) << kind.name;
      memory += kind.bytes;
    }
    EXPECT_EQ(memory, f.peak_gpu_memory);
    EXPECT_LE(f.peak_gpu_allocated, f.peak_gpu_reserved);
    EXPECT_LE(f.peak_gpu_reserved, f.peak_gpu_memory);

    for (const auto* list : {&f.communication, &f.communication_by_purpose}) {
      Duration exposed{};
      for (const auto& use : *list) {
        EXPECT_LE(use.exposed, use.time) << use.name;
        EXPECT_GT(use.bytes_per_gpu.value(), 0) << use.name;
        exposed += use.exposed;
      }
      EXPECT_EQ(exposed.value(), time_of(f.breakdown, "exposed_communication"));
    }
    Bytes by_kind{};
    Bytes by_purpose{};
    for (const auto& use : f.communication) {
      by_kind += use.bytes_per_gpu;
    }
    for (const auto& use : f.communication_by_purpose) {
      by_purpose += use.bytes_per_gpu;
    }
    EXPECT_EQ(by_kind, by_purpose) << "the same bytes, sorted twice";
  }
  EXPECT_GE(plans, 2U);
}

TEST_P(Laws, TheStepLiesBetweenItsKernelsAndTheSumOfEverything) {
  for (scenario::PlanEntry entry : feasible(scenario_)) {
    SCOPED_TRACE(entry.plan.name);
    const results::Figures f = simulate(scenario_, machine_, entry, {}).figures.value();
    ASSERT_TRUE(f.lower_bound.has_value());
    EXPECT_LE(*f.lower_bound, f.step_time) << "closed form and engine read the same graph";
    // Uneven ranks wait for each other at every step of a ring.
    if (entry.plan.sequence_length >= 64 * 1024 && f.attention_imbalance.value_or(1.0) < 1.01) {
      // A pipeline idles (p−1)/(v·m) of its kernels' time, and its stages are not quite equal.
      const auto ends = static_cast<double>(entry.plan.mesh.size(workload::MeshAxis::pipeline) - 1);
      const double bubble = ends / static_cast<double>(entry.plan.virtual_stages * entry.plan.accumulation);
      EXPECT_GT(*f.lower_bound / f.step_time * (1 + bubble), 0.8) << "long sequences are bound by their kernels";
    }

    // Without interference, and with a host that costs nothing, some op of the last rank runs at every instant.
    entry.framework.communication_sms.value = 0;
    entry.framework.issue_time_per_kernel.value = Duration{};
    const auto stages = run_stages(scenario_, machine_, entry, Stage::timeline);
    Duration serial{};
    for (const results::Span& span : stages->timeline.ranks.front().spans) {
      serial += span.end - span.begin;
    }
    EXPECT_LE(stages->timeline.end - Instant{}, serial);
    EXPECT_LE(estimate(stages->parallel, *machine_.cost), stages->timeline.end - Instant{});
  }
}

TEST_P(Laws, ModelFlopsDependOnTheBatchAndTheMaskOnly) {
  std::map<std::string, double> per_sequence;
  for (const scenario::PlanEntry& entry : feasible(scenario_)) {
    const auto stages = run_stages(scenario_, machine_, entry, Stage::parallel);
    const double flops = workload::model_flops(stages->parallel).value();
    EXPECT_NEAR(flops / workload::model_flops(stages->logical).value(), 1.0, 1e-12) << entry.plan.name;
    EXPECT_GE(workload::executed_flops(stages->parallel).value(), flops) << entry.plan.name;
    const double one = flops / static_cast<double>(entry.plan.global_batch());
    const workload::Mask mask = workload::mask_of({}, step_options(scenario_.model, entry));
    const double other = per_sequence.try_emplace(describe(mask), one).first->second;
    EXPECT_NEAR(one / other, 1.0, 1e-12) << entry.plan.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, Laws, testing::ValuesIn(run_names()), test_name);

}  // namespace
}  // namespace ulysim::study
