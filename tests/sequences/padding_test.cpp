// Which question this answers: what does filling sequences up cost, and who counts it?

#include "tests/sequences/lab.h"

namespace ulysim::study::sequences {
namespace {

TEST(Padding, fills_up_to_what_the_plan_needs_and_counts_no_padding) {
  // 8·2 parts for zigzag: 100,001 tokens are filled up to 100,016; ulysses 8 needs 100,008.
  const scenario::Scenario scenario = parse("{sequence_length: 100001, pad_to_multiple: auto, tiled_loss: true}",
                                            "[{ulysses: 8}, {ring: 8}, {ring: 8, pad_to_multiple: 256, name: far}]");
  EXPECT_EQ(scenario.plans[0].plan.sequence_length, 100008);
  EXPECT_EQ(scenario.plans[1].plan.sequence_length, 100016);
  EXPECT_EQ(scenario.plans[2].plan.sequence_length, 100096);
  const auto f = figures_of(scenario);
  for (const results::Figures& each : f) {
    EXPECT_EQ(each.tokens_per_step, 100001);
    // Model FLOPs = MFU · peak · time, whatever the filling.
    EXPECT_NEAR(
        each.model_tflops_per_gpu * seconds(each.step_time) / (f[0].model_tflops_per_gpu * seconds(f[0].step_time)),
        1.0, 1e-9);
  }
  EXPECT_EQ(f[0].padding.value().tokens, 7);
  EXPECT_EQ(f[2].padding.value().tokens, 95);
  EXPECT_NEAR(f[2].padding->share, 95.0 / 100096, 1e-12);
  // More than the share of tokens: attention grows with the square.
  EXPECT_GT(f[2].padding->extra_executed, 95.0 / 100096);
  EXPECT_LT(f[2].padding->extra_executed, 2.1 * 95.0 / 100001);
}

TEST(Padding, without_it_such_a_plan_cannot_run) {
  const scenario::Scenario scenario = parse("{sequence_length: 100001}", "[{ulysses: 8}]");
  const std::vector<Infeasible> reasons = check(scenario, scenario.plans[0]);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0].suggestion, "pad to 100008 tokens, or cut to 100000");
}

TEST(Padding, a_length_that_divides_is_left_alone) {
  const auto f = figures_of(parse("{sequence_length: 64Ki, tiled_loss: true}",
                                  "[{ulysses: 8}, {ulysses: 8, pad_to_multiple: auto, name: filled}]"));
  EXPECT_EQ(f[0].step_time, f[1].step_time);
  EXPECT_FALSE(f[1].padding.has_value());
}

TEST(Padding, of_packed_documents_is_a_document_of_its_own) {
  const scenario::Scenario scenario =
      parse("{sequence_length: {packed: [60001, 40000]}, pad_to_multiple: auto, tiled_loss: true}", "[{ring: 8}]");
  const strategies::Plan& plan = scenario.plans[0].plan;
  EXPECT_EQ(*plan.documents, (std::vector<std::int64_t>{60001, 100001, 100016}));
  EXPECT_EQ(figures_of(scenario)[0].padding.value().tokens, 15);
}

TEST(Padding, a_batch_of_unequal_lengths_is_worked_at_the_longest) {
  // 64Ki + 32Ki of 128Ki tokens are trained on.
  const scenario::Scenario scenario = parse("{sequence_length: {padded: [64Ki, 32Ki]}, tiled_loss: true}",
                                            "[{ulysses: 8}, {ulysses: 8, sequence_length: 64Ki, name: full}]");
  EXPECT_EQ(scenario.plans[0].plan.micro_batch, 2);
  const auto f = figures_of(scenario);
  EXPECT_EQ(f[0].step_time, f[1].step_time) << "the same work";
  EXPECT_EQ(f[0].tokens_per_step, 96 * 1024);
  EXPECT_EQ(f[1].tokens_per_step, 128 * 1024);
  EXPECT_EQ(f[0].padding.value().share, 0.25);
  EXPECT_LT(f[0].mfu, 0.75 * f[1].mfu) << "a short sequence also has less attention a token";
}

}  // namespace
}  // namespace ulysim::study::sequences
