// Which question this answers: what does a sparse mask change? DeepSpeed-Ulysses (arXiv 2309.14509 §3.1) claims to
// serve dense and sparse attention alike: the kernels' work follows the mask, the all-to-alls do not know it.

#include "tests/sequences/lab.h"

namespace ulysim::study::sequences {
namespace {

TEST(Masks, attention_follows_the_density_and_ulysses_communication_does_not_change) {
  const scenario::Scenario scenario = parse(
      "{sequence_length: 256Ki, tiled_loss: true}",
      "[{ulysses: 8}, {ulysses: 8, name: half, attention: {mask: {block_sparse: {block: 64, density: 0.5}}}}, "
      "{ulysses: 8, name: tenth, attention: {mask: {block_sparse: {block: 64, density: 0.1}}}}, "
      "{ulysses: 8, name: local, attention: {mask: {block_sparse: {block: 64, local: 8, global: 1, stride: 64}}}}]");
  const auto f = figures_of(scenario);
  const double dense = part(f[0], "attention");
  // A row of 256Ki/2 keys on average is long: what a row costs beside its keys is about a percent.
  EXPECT_NEAR(part(f[1], "attention") / dense, 0.5, 0.02);
  EXPECT_NEAR(part(f[2], "attention") / dense, 0.1, 0.02);
  // 4096 blocks a side; a row of blocks b keeps 8 + 1 + about b/64 of b: 32 + 9 of 2048 on average, and kernels pay
  // for rows that are short.
  EXPECT_LT(part(f[3], "attention") / dense, 0.05);
  EXPECT_GT(part(f[3], "attention") / dense, 0.02);
  for (std::size_t i = 1; i < f.size(); ++i) {
    EXPECT_EQ(sent(f[i], "ulysses"), sent(f[0], "ulysses")) << scenario.plans[i].plan.name;
    EXPECT_EQ(sent(f[i], "parameters"), sent(f[0], "parameters"));
    EXPECT_EQ(f[i].peak_gpu_memory, f[0].peak_gpu_memory);
    EXPECT_NEAR(part(f[i], "gemm") / part(f[0], "gemm"), 1.0, 1e-9);
    EXPECT_LT(f[i].step_time, f[0].step_time);
  }
}

TEST(Masks, a_window_is_linear_in_the_length) {
  const auto time = [](const char* length) {
    const auto f = figures_of(parse(
        std::string("{sequence_length: ") + length + ", tiled_loss: true, attention: {mask: {sliding_window: 4Ki}}}",
        "[{ulysses: 8}]"));
    return part(f[0], "attention");
  };
  EXPECT_NEAR(time("512Ki") / time("256Ki"), 2.0, 0.05);
}

TEST(Masks, a_ring_skips_the_blocks_that_a_window_hides_but_still_sends_them) {
  // Contiguous, 32Ki tokens a rank, window 4Ki: keys of the rank before are seen, earlier ones are not.
  const scenario::Scenario scenario =
      parse("{sequence_length: 256Ki, tiled_loss: true}",
            "[{ring: 8, ring_layout: contiguous}, "
            "{ring: 8, ring_layout: contiguous, name: window, attention: {mask: {sliding_window: 4Ki}}}]");
  const auto f = figures_of(scenario);
  EXPECT_LT(part(f[1], "attention"), 0.2 * part(f[0], "attention"));
  EXPECT_EQ(sent(f[1], "ring"), sent(f[0], "ring"));
  EXPECT_GT(part(f[1], "exposed_communication"), part(f[0], "exposed_communication"))
      << "what hid the transfers is gone";
}

}  // namespace
}  // namespace ulysim::study::sequences
