// Which question this answers: are bytes, FLOPs and rates of one shipped scenario those of a pencil?
// Llama-2-7B, 65,536 tokens on 8 A100: 32 layers of hidden 4096, 32 heads of 128 (no grouping), FFN 11008, vocabulary
// 32,000; one rank holds 8192 tokens, so one tensor of all heads is 8192 · 4096 · 2 B = 64 MiB.

#include <gtest/gtest.h>

#include "tests/study/lab.h"

namespace ulysim::study {
namespace {

constexpr std::int64_t kMi = 1 << 20;
constexpr std::int64_t kLayers = 32;
constexpr std::int64_t kLayerWeights = 4LL * 4096 * 4096 + 3LL * 4096 * 11008;
constexpr std::int64_t kTable = 32000LL * 4096;

class Llama2 : public testing::Test {
 protected:
  static results::Figures of(const std::string& plan) {
    const scenario::Scenario scenario = load_run("llama2-7b-64k-8xa100");
    for (std::size_t i = 0; i < scenario.plans.size(); ++i) {
      if (scenario.plans[i].plan.name == plan) {
        return figures_of(scenario, i);
      }
    }
    ADD_FAILURE() << "no plan " << plan;
    return {};
  }
};

TEST_F(Llama2, UlyssesSendsFourTensorsAPass) {
  // Q, K, V to heads and O back: 4 all-to-alls a layer in forward, in its recompute and, of gradients, in backward;
  // a GPU keeps 1/8 of each (DeepSpeed-Ulysses, arXiv 2309.14509 §3.2).
  const results::Figures f = of("ulysses=8");
  EXPECT_EQ(bytes_of(f.communication, "all_to_all"), kLayers * 3 * 4 * 64 * kMi * 7 / 8);
  EXPECT_EQ(bytes_of(f.communication_by_purpose, "ulysses"), bytes_of(f.communication, "all_to_all"));
}

TEST_F(Llama2, RingPassesKeysAndValuesAndTheirGradients) {
  // Forward and recompute: 7 shifts of K and V. Backward: 7 more, and 8 of dK and dV in fp32, the last one home.
  const std::int64_t kv = 2 * 64 * kMi;
  EXPECT_EQ(bytes_of(of("ring=8").communication, "send_recv"), kLayers * (3 * 7 * kv + 8 * 2 * kv));
}

TEST_F(Llama2, ZeroGathersWeightsTwiceAndReducesEveryGradientOnce) {
  const results::Figures f = of("ulysses=8");
  // bf16. Forward and backward of each layer; embedding and head once (the tiled loss does both passes at a time).
  EXPECT_EQ(bytes_of(f.communication, "all_gather"), (2 * kLayers * kLayerWeights + 2 * kTable) * 2 * 7 / 8);
  // fp32 with sequence parallelism (DeepSpeed engine.py), norms included; padding is below a byte a tensor and rank.
  const std::int64_t parameters = kLayers * (kLayerWeights + 2 * 4096) + 2 * kTable + 4096;
  EXPECT_NEAR(static_cast<double>(bytes_of(f.communication, "reduce_scatter")),
              static_cast<double>(parameters * 4 * 7 / 8), 2048.0);
}

TEST_F(Llama2, RatesFollowFromTheStep) {
  const results::Figures f = of("ulysses=8");
  const double step = seconds(f.step_time);
  EXPECT_DOUBLE_EQ(f.tokens_per_step, 65536.0);
  EXPECT_NEAR(f.tokens_per_s_per_gpu, 65536.0 / step / 8.0, 1e-9 * f.tokens_per_s_per_gpu);
  // Model FLOPs: 6 a weight and token; attention forward 2 products over the causal pairs, backward twice that.
  const double tokens = 65536;
  const double weights = static_cast<double>(kLayers * kLayerWeights + kTable);
  const double pairs = tokens * (tokens + 1) / 2;
  const double attention_forward = static_cast<double>(kLayers) * 4.0 * 128 * 32 * pairs;
  const double model = 6.0 * weights * tokens + 3.0 * attention_forward;
  EXPECT_NEAR(f.model_tflops_per_gpu, model / 8.0 / step / 1e12, 1e-9 * f.model_tflops_per_gpu);
  EXPECT_NEAR(f.mfu, model / 8.0 / step / 312e12, 1e-9) << "A100: 312 TFLOP/s dense bf16";
  // Executed: the layers' forward once more, and a flash backward of 2.5 forwards (five products for two).
  const double executed = (8.0 * weights - 2.0 * static_cast<double>(kTable)) * tokens + (2 + 2.5) * attention_forward;
  EXPECT_NEAR(f.hardware_tflops_per_gpu, executed / 8.0 / step / 1e12, 1e-9 * f.hardware_tflops_per_gpu);
}

TEST_F(Llama2, AWholeRunCostsWhatItsTokensTake) {
  scenario::Scenario scenario = load_run("llama2-7b-64k-8xa100");
  scenario.total_tokens = 10'000'000'000;
  scenario.price_per_gpu_hour = 2.0;
  const results::Figures f = figures_of(scenario);
  const double hours = 1e10 / 65536.0 * seconds(f.step_time) / 3600.0;
  EXPECT_NEAR(f.total_days.value(), hours / 24.0, 1e-6 * hours);
  EXPECT_NEAR(f.total_gpu_hours.value(), 8.0 * hours, 1e-6 * hours);
  EXPECT_NEAR(f.total_cost.value(), 16.0 * hours, 1e-6 * hours);
}

TEST(Precision, IsRefusedByNameWhereGpuOrStackHaveNone) {
  const auto why = [](const char* node, const char* training) {
    const scenario::Scenario s = parse({.cluster = std::string("{node: ") + node + "}",
                                        .training = std::string("{sequence_length: 4Ki, ") + training + "}",
                                        .plans = "[{}]"});
    std::string all;
    for (const Infeasible& reason : check(s, s.plans.front())) {
      all += reason.reason + "\n";
    }
    return all;
  };
  EXPECT_EQ(why("dgx-a100", "gemm_precision: fp8, framework: megatron-core"), "a100-80-sxm has no fp8 matrix units\n");
  EXPECT_EQ(why("dgx-h100", "gemm_precision: mxfp8, framework: megatron-core"), "h100-sxm has no mxfp8 matrix units\n");
  EXPECT_EQ(why("dgx-h100", "gemm_precision: fp8"), "no recipe of deepspeed-hf for fp8 products is known\n");
  EXPECT_EQ(why("dgx-h100", "gemm_precision: fp8, framework: megatron-core"), "");
  EXPECT_EQ(why("dgx-b200", "gemm_precision: nvfp4, framework: megatron-core"), "");
}

}  // namespace
}  // namespace ulysim::study
