// What makes the operands of fp8 products, by pencil: llama-3.1-8b, 4,096 tokens.

#include <gtest/gtest.h>

#include <filesystem>
#include <string_view>

#include "sim/workload/hf_config.h"
#include "sim/workload/training_step.h"
#include "sim/workload/verify.h"

namespace ulysim::workload {
namespace {

constexpr double kTokens = 4096;
constexpr double kInputs = kTokens * (4096 + 4096 + 4096 + 14336);  ///< of q, k, v; of o; of gate, up; of down
constexpr double kOutputs = kTokens * (4096 + 1024 + 1024 + 4096 + 14336 + 14336 + 4096);
constexpr double kWeights = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336;

OpGraph step(const ElementwiseCosts& costs, bool quantised_gather) {
  const Transformer model =
      load_hf_config(std::filesystem::path(ULYSIM_SOURCE_DIR) / "scenarios" / "models" / "llama-3.1-8b");
  const OpGraph graph = build_training_step(model, {.sequence_length = 4096,
                                                    .gemm_precision = kernel::Precision::fp8,
                                                    .quantised_gather = quantised_gather,
                                                    .costs = costs});
  EXPECT_TRUE(verify_shapes(graph).empty());
  return graph;
}

double moved(const OpGraph& graph, Phase phase, std::string_view begin) {
  const BlockTemplate& layer = graph.templates[1];
  double bytes = 0;
  for (const Op& op : layer.body(phase).ops) {
    if (op.name.rfind(begin, 0) == 0) {
      for (const Traffic& each : std::get<ElementwiseWork>(op.work).traffic) {
        bytes += each.bytes_per_element * static_cast<double>(local_elements(layer.tensor(each.tensor), graph.mesh));
      }
    }
  }
  return bytes;
}

TEST(Quantise, gradients_may_take_more_than_activations) {
  const OpGraph graph = step({.quantise_traffic = 5, .quantise_gradient_traffic = 6}, true);
  EXPECT_EQ(moved(graph, Phase::forward, "quantise"), 5 * kInputs);
  EXPECT_EQ(moved(graph, Phase::backward, "quantise"), 6 * kOutputs) << "once for dgrad and wgrad";
}

TEST(Quantise, inputs_that_stay_bf16_are_cast_again_for_the_gradients_of_weights) {
  const ElementwiseCosts costs{.quantise_traffic = 5, .quantise_gradient_traffic = 6, .requantise_traffic = 3};
  const OpGraph graph = step(costs, true);
  EXPECT_EQ(moved(graph, Phase::forward, "quantise"), 5 * kInputs);
  EXPECT_EQ(moved(graph, Phase::backward, "quantise"), 6 * kOutputs + 3 * kInputs) << "that of q, k and v once";
}

TEST(Quantise, weights_that_came_quantised_are_transposed_in_backward) {
  const ElementwiseCosts costs{.quantise_weight_traffic = 5, .transpose_weight_traffic = 2};
  const OpGraph graph = step(costs, true);
  EXPECT_EQ(moved(graph, Phase::forward, "transpose"), 0);
  EXPECT_EQ(moved(graph, Phase::backward, "transpose"), 2 * kWeights);
  // Those that did not are cast along the other dimension at once.
  const OpGraph cast_here = step(costs, false);
  EXPECT_EQ(moved(cast_here, Phase::backward, "transpose"), 0);
  EXPECT_EQ(moved(cast_here, Phase::backward, "quantise"), 5 * kWeights);
}

}  // namespace
}  // namespace ulysim::workload
