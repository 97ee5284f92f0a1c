#include "sim/study/step_options.h"

#include <gtest/gtest.h>

#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

workload::ElementwiseCosts costs_of(const std::string& framework, const std::string& plan) {
  const scenario::Scenario scenario =
      parse({.training = "{sequence_length: 8192, framework: " + framework + ", gemm_precision: fp8, zero: 3}",
             .plans = "[" + plan + "]"});
  return step_options(scenario.model, scenario.plans.front()).costs;
}

// torchao keeps bf16 inputs and casts them again in backward; tensor parallel ones are cast before they are gathered.
TEST(StepOptions, InputsAreCastAgainWhereTheyAreKeptInBf16) {
  EXPECT_EQ(costs_of("torchtitan", "{data: 8}").requantise_traffic, 3);
  EXPECT_EQ(costs_of("torchtitan", "{tensor: 8}").requantise_traffic, 0);
  EXPECT_EQ(costs_of("megatron-core", "{data: 8}").requantise_traffic, 0);
}

TEST(StepOptions, GradientsAreQuantisedAsActivationsWhereTheStackDoesNotSay) {
  const workload::ElementwiseCosts torchtitan = costs_of("torchtitan", "{data: 8}");
  EXPECT_EQ(torchtitan.quantise_traffic, 5);
  EXPECT_EQ(torchtitan.quantise_gradient_traffic, 6);
  const workload::ElementwiseCosts megatron = costs_of("megatron-core", "{data: 8}");
  EXPECT_GT(megatron.quantise_traffic, 0);
  EXPECT_EQ(megatron.quantise_gradient_traffic, megatron.quantise_traffic);
}

}  // namespace
}  // namespace ulysim::study
