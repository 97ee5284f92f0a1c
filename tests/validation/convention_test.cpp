#include <gtest/gtest.h>

#include <string>

#include "sim/study/validate_convention.h"
#include "sim/workload/hf_config.h"

namespace ulysim::study {
namespace {

workload::Transformer model(const std::string& name) {
  return workload::load_hf_config(std::string(ULYSIM_SOURCE_DIR "/scenarios/models/") + name + "/config.json");
}

TEST(Convention, FullX4IsMegatronsFormulaForAGpt) {
  // arXiv 2104.04473, equation 3, with h 4096, L 32, V 50257: 96·s·L·h²·(1 + s/6h + V/16Lh).
  const double s = 65536.0;
  const double h = 4096.0;
  const double megatron = 96.0 * s * 32.0 * h * h * (1.0 + s / (6.0 * h) + 50257.0 / (16.0 * 32.0 * h));
  EXPECT_NEAR(convention_flops(model("gpt-7b"), 65536, Convention::full_x4) / megatron, 1.0, 1e-12);
}

TEST(Convention, TheFourDifferByPassesAndByTheMaskOnly) {
  // By pencil for llama-2-7b and 4 tokens: weights of a layer 4·4096² + 3·4096·11008 = 202,375,168; pairs 10 causal,
  // 16 full; 4·4096 FLOPs a pair; head 2·4·4096·32000.
  const auto llama = model("llama-2-7b");
  const double linear = 32.0 * 2.0 * 4.0 * 202'375'168.0;
  const double head = 2.0 * 4.0 * 4096.0 * 32000.0;
  const double pair = 32.0 * 4.0 * 4096.0;
  EXPECT_DOUBLE_EQ(convention_flops(llama, 4, Convention::causal_x3), 3.0 * (linear + 10.0 * pair + head));
  EXPECT_DOUBLE_EQ(convention_flops(llama, 4, Convention::full_x3), 3.0 * (linear + 16.0 * pair + head));
  EXPECT_DOUBLE_EQ(convention_flops(llama, 4, Convention::causal_x4), 4.0 * (linear + 10.0 * pair) + 3.0 * head);
  EXPECT_DOUBLE_EQ(convention_flops(llama, 4, Convention::full_x4), 4.0 * (linear + 16.0 * pair) + 3.0 * head);
}

TEST(Convention, AWindowCountsOnlyWhatItShows) {
  // 10 tokens, window 3: 1 + 2 + 3·8 = 27 of the 55 causal pairs.
  auto llama = model("llama-2-7b");
  const double all = convention_flops(llama, 10, Convention::causal_x3);
  for (workload::LayerSpec& layer : llama.layer_specs) {
    layer.sliding_window = 3;
  }
  EXPECT_DOUBLE_EQ(all - convention_flops(llama, 10, Convention::causal_x3), 3.0 * 32.0 * 4.0 * 4096.0 * 28.0);
}

// A publication that prints both time and TFLOP/s of a run tells its convention: FLOPs = TFLOP/s · s · GPUs.
struct Printed {
  const char* what{};
  const char* model{};
  Convention convention{};
  std::int64_t tokens{};
  double sequences{};
  double gpus{};
  double seconds{};
  double tflops{};
  double tolerance{};
};

class PrintedFlops : public testing::TestWithParam<Printed> {};

TEST_P(PrintedFlops, AreWhatTheConventionCounts) {
  const Printed& p = GetParam();
  const double counted = convention_flops(model(p.model), p.tokens, p.convention) * p.sequences;
  EXPECT_NEAR(p.tflops * 1e12 * p.seconds * p.gpus / counted, 1.0, p.tolerance) << p.what;
}

INSTANTIATE_TEST_SUITE_P(Sources, PrintedFlops,
                         testing::Values(Printed{"DeepSpeed-Ulysses table 3, 64 A100", "gpt-7b", Convention::full_x4,
                                                 65536, 8, 64, 9.67676, 161.3626667, 0.003},
                                         Printed{"DeepSpeed-Ulysses table 3, 256 A100", "gpt-7b", Convention::full_x4,
                                                 262144, 8, 256, 33.4865, 147.4, 0.003},
                                         Printed{"ALST table 1, 1.1M tokens (9:24)", "llama-3.1-8b",
                                                 Convention::full_x4, 1'100'000, 1, 8, 564, 576.1, 0.005},
                                         Printed{"ALST table 1, printed as 3.7M (1:47:35)", "llama-3.1-8b",
                                                 Convention::full_x4, 3'800'000, 1, 8, 6455, 590.6, 0.005},
                                         // XTuner prints tokens/s/GPU: the seconds of one sequence on one GPU.
                                         Printed{"XTuner 128K", "llama-2-7b", Convention::causal_x4, 131072, 1, 1,
                                                 131072 / 948.6, 180.3, 0.01},
                                         Printed{"XTuner 1M", "llama-2-7b", Convention::causal_x4, 1048576, 1, 1,
                                                 1048576 / 133.6, 153.9, 0.01}),
                         [](const testing::TestParamInfo<Printed>& run) { return "Run" + std::to_string(run.index); });

}  // namespace
}  // namespace ulysim::study
