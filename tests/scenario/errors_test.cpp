// Which question this answers: does every mistake get its own sentence at its own place? The sentences are the golden
// file; `Refusal` holds that nothing of the contract is read and then ignored.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/reports/golden.h"
#include "tests/scenario/small.h"

namespace ulysim::scenario {
namespace {

using testing::HasSubstr;

struct Case {
  const char* what{};
  std::string text{};
};

std::vector<Case> cases() {
  const std::string good = "{sequence_length: 1Mi}";
  return {
      {"nothing at all", ""},
      {"a list", "[1, 2]"},
      {"a torn file", "model: [llama"},
      {"an unknown key, nearly right", "modle: x\n" + study(good, "[{}]")},
      {"an unknown model", "model: llama-3.1-8\ncluster: {node: dgx-h100}\ntraining: " + good + "\nplans: [{}]\n"},
      {"no node", "model: llama-3.1-8b\ncluster: {nodes: 2}\ntraining: " + good + "\nplans: [{}]\n"},
      {"more GPUs than a node has",
       "model: llama-3.1-8b\ncluster: {node: dgx-h100, gpus: 9}\ntraining: " + good + "\nplans: [{}]\n"},
      {"more nodes than can be simulated",
       "model: llama-3.1-8b\ncluster: {node: dgx-h100, nodes: 1M}\ntraining: " + good + "\nplans: [{}]\n"},
      {"an absurd network",
       "model: llama-3.1-8b\ncluster: {node: dgx-h100, network: {topology: fat-tre, oversubscription: 0.5, "
       "nic_bandwidth: "
       "400GB, latency: 2s, color: red}}\ntraining: " +
           good + "\nplans: [{}]\n"},
      {"no length", study("{}", "[{ulysses: 8}]")},
      {"an absurd length", study("{sequence_length: 1Ti}", "[{ulysses: 8}]")},
      {"numbers of the wrong kind",
       study("{sequence_length: 1.5, micro_batch: -1, zero: 4, tiled_mlp: yes, global_batch: \"8\"}", "[{}]")},
      {"two batches", study("{sequence_length: 1Mi, gradient_accumulation: 2, global_batch: 8}", "[{}]")},
      {"a batch that does not divide", study("{sequence_length: 4Ki, global_batch: 12}", "[{}]")},
      {"an unknown framework", study("{sequence_length: 1Mi, framework: deepspeed}", "[{ulysses: 8}, {ring: 8}]")},
      {"words nearly right",
       study("{sequence_length: 1Mi, recompute: ful, attention: {implementation: flash-attention-4, mask: casual}}",
             "[{}]")},
      {"no plans", "model: llama-3.1-8b\ncluster: {node: dgx-h100}\ntraining: " + good + "\n"},
      {"plans that are no list", study(good, "{ulysses: 8}")},
      {"degrees that do not divide",
       study(good, "[{tensor: 3, ulysses: 2}, {ulysses: 16}, {data: 3}, {tensor: 2, data: 2}]")},
      {"degrees of nothing", study(good, "[{ulysses: 0}, {ring: 1Gi}]")},
      {"a placement twice", study(good, "[{ulysses: 8, placement: [ulysses, ulysses]}, {placement: [rink]}]")},
      {"two plans of one name", study(good, "[{ulysses: 8}, {ulysses: 8, data: 1}]")},
      {"lengths of several kinds",
       study("{sequence_length: {packed: [4Ki], padded: [4Ki]}}",
             "[{sequence_length: [4Ki, 8Ki]}, {sequence_length: "
             "{packed: []}}, {sequence_length: {packed: [4Ki, 0, x]}}, {sequence_length: {packed: [2Gi, 1]}}]")},
      {"padded lengths beside another micro batch",
       study("{sequence_length: {padded: [4Ki, 8Ki]}, micro_batch: 3}", "[{}]")},
      {"distributions that say too little or too much",
       study("{sequence_length: {distribution: {}}}",
             "[{sequence_length: {distribution: {kind: lognormal, pack_to: 1Mi}}}, {sequence_length: {distribution: "
             "{kind: "
             "uniform, mean: 4Ki, pack_to: 1Mi}}}, {sequence_length: {distribution: {kind: constant, mean: 4Ki, sigma: "
             "1, "
             "pack_to: 1Mi}}}, {sequence_length: {distribution: {kind: constant, mean: 1, pack_to: 1Mi}}}]")},
      {"masks of two kinds or none",
       study("{sequence_length: 1Mi, attention: {mask: {}}}",
             "[{attention: {mask: {sliding_window: 4Ki, block_sparse: {local: 4}}}}, {attention: {mask: {block_sparse: "
             "{}}}}, {attention: {mask: {block_sparse: {local: 4, density: 0.1}}}}, {attention: {mask: {block_sparse: "
             "{density: 0.1, causal: false}}}}, {attention: {mask: {sliding_windw: 4Ki}}}]")},
      {"a padding that is none", study("{sequence_length: 1Mi, pad_to_multiple: always}", "[{pad_to_multiple: 0}]")},
      {"together too much", study("{sequence_length: 1Gi, micro_batch: 1Mi}", "[{ulysses: 8}]")},
      {"too many micro steps", study("{sequence_length: 4Ki, global_batch: 1Mi}", "[{ulysses: 8}]")},
  };
}

TEST(Errors, EveryMistakeHasItsSentence) {
  std::string text;
  for (const Case& c : cases()) {
    const std::string found = complaints(c.text);
    EXPECT_FALSE(found.empty()) << c.what << ": was accepted";
    text += std::string("== ") + c.what + "\n" + found;
  }
  testing_support::expect_golden("scenario/errors.golden", text);
}

TEST(Errors, OverridesAreLocatedByTheirNumber) {
  const std::string found =
      complaints(study("{sequence_length: 1Mi}", "[{}]"), {.overrides = {{.text = "training.zero=7", .number = 1},
                                                                         {.text = "plans.5.ring=2", .number = 2},
                                                                         {.text = "no equals sign", .number = 3},
                                                                         {.text = "model.x=1", .number = 4},
                                                                         {.text = "training.zero=", .number = 5},
                                                                         {.text = "training.zero=[", .number = 6}}});
  EXPECT_THAT(found, HasSubstr("--set:2:1: error: 'plans.5.ring': '5' is no index of a list of 1\n"));
  EXPECT_THAT(found, HasSubstr("--set:3:1: error: 'no equals sign' is not of the form key=value"));
  EXPECT_THAT(found, HasSubstr("--set:4:1: error: 'model.x': 'x' stands in a single value\n"));
  EXPECT_THAT(found, HasSubstr("--set:5:1: error: 'training.zero' has no value\n"));
  EXPECT_THAT(found, HasSubstr("--set:6:"));
  EXPECT_THAT(complaints(study("{sequence_length: 1Mi}", "[{}]"), {.overrides = {{.text = "training.zero=7"}}}),
              HasSubstr("--set:1:15: error: 'training.zero': 7 is outside 0 to 3\n"));
}

TEST(Refusal, WhatIsNotYetSimulatedIsRefusedByName) {
  struct Refused {
    const char* training{};
    const char* plan{};
    const char* says{};
  };
  const std::array<Refused, 2> all{{
      {"recompute: {layer: 4}", "", "'training.recompute': 'layers' is needed"},
      {"optimizer: {states: fp16}", "", "'training.optimizer.states': 'fp16' is not yet supported"},
  }};
  for (const Refused& r : all) {
    EXPECT_THAT(
        complaints(study("{sequence_length: 1Mi, " + std::string(r.training) + "}", std::string("[{") + r.plan + "}]")),
        HasSubstr(r.says));
  }
}

TEST(Refusal, AdaptersThatMeanNothing) {
  const auto says = [](const char* training) {
    return complaints(study(std::string("{sequence_length: 1Mi, ") + training + "}", "[{}]"));
  };
  EXPECT_THAT(says("base_precision: nf4"), HasSubstr("base_precision nf4 is of frozen weights"));
  EXPECT_THAT(says("trainable: {lora: {targets: [q_prj]}}"),
              HasSubstr("'training.trainable.lora.targets': unknown linear map 'q_prj'; did you mean 'q_proj'?"));
  EXPECT_THAT(says("trainable: {lora: {rank: 0}}"), HasSubstr("'training.trainable.lora.rank': 0 is outside 1 to"));
  EXPECT_THAT(says("trainable: {}"), HasSubstr("'training.trainable': 'lora' is needed"));
  EXPECT_THAT(says("trainable: lora"), HasSubstr("'training.trainable'"));
}

}  // namespace
}  // namespace ulysim::scenario
