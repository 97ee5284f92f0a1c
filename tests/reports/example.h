#pragma once

#include "sim/results/study_result.h"

namespace ulysim::reports {

inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;
inline constexpr std::int64_t kSecond = 1'000'000'000'000;

/// Round numbers by hand: a step of `step` seconds of 800,000 tokens on 8 GPUs, of which `exposed` seconds are
/// exposed communication and the rest attention.
inline results::Figures figures(std::int64_t step, std::int64_t exposed, std::int64_t memory_gib) {
  results::Figures f{.step_time = Duration(step * kSecond),
                     .tokens_per_step = 800'000.0,
                     .tokens_per_s_per_gpu = 100'000.0 / static_cast<double>(step),
                     .mfu = 0.5,
                     .model_tflops_per_gpu = 494.5,
                     .hardware_tflops_per_gpu = 650.25,
                     .lower_bound = Duration((step - 1) * kSecond),
                     .peak_gpu_memory = Bytes(memory_gib * kGiB),
                     .peak_gpu_allocated = Bytes((memory_gib - 4) * kGiB),
                     .peak_gpu_reserved = Bytes((memory_gib - 2) * kGiB),
                     .gpu_memory_capacity = Bytes(80 * kGiB),
                     .peak_host_memory_per_node = Bytes(512 * kGiB),
                     .host_memory_capacity_per_node = Bytes(2048 * kGiB)};
  f.memory = {{"weights", Bytes(2 * kGiB)}, {"logits", Bytes((memory_gib - 2) * kGiB)}};
  f.peak_tensors = {{"logits", "logits", Bytes(kGiB), 2}};
  f.memory_curve = {{Instant(0), Bytes(kGiB)}, {Instant(kSecond), Bytes(2 * kGiB)}};
  f.memory_by_kind = {.kinds = {"weights", "logits"}, .bytes = {{Bytes(kGiB), Bytes()}, {Bytes(kGiB), Bytes(kGiB)}}};
  f.host_memory = {{"checkpoints", Bytes(512 * kGiB)}};
  f.communication = {{"all_to_all", Bytes(1'000'000), Duration(2 * exposed * kSecond), Duration(exposed * kSecond)}};
  f.communication_by_purpose = {
      {"ulysses", Bytes(1'000'000), Duration(2 * exposed * kSecond), Duration(exposed * kSecond)}};
  f.breakdown = {{"attention", Duration((step - exposed) * kSecond)},
                 {"gemm", Duration()},
                 {"exposed_communication", Duration(exposed * kSecond)}};
  f.bottleneck = "attention kernels";
  f.links = {{"nvlink", "nvlink", 450e9, 45e9, 0.1, 8}};
  f.picture_links = {0, std::nullopt};
  f.layer_timeline = {
      .layer = 16,
      .forward = {.begin = Instant(kSecond),
                  .end = Instant(3 * kSecond),
                  .streams = {"compute", "ulysses_comm"},
                  .spans = {{"q_proj", "gemm", 0, Instant(kSecond), Instant(2 * kSecond)},
                            {"all_to_all_q", "ulysses", 1, Instant(2 * kSecond), Instant(3 * kSecond)}}},
      .backward = {.begin = Instant(4 * kSecond), .end = Instant(5 * kSecond), .omitted_spans = 7}};
  f.gpu_fit = memory_gib > 80 ? results::Fit::no : memory_gib > 78 ? results::Fit::risky : results::Fit::yes;
  return f;
}

/// Four plans: one wins, one is slower by its communication, one does not fit, one cannot run.
inline results::StudyResult example() {
  results::StudyResult study{.scenario = {.name = "example",
                                          .model = "llama-3.1-8b",
                                          .node = "dgx-h100",
                                          .gpu = "h100-sxm",
                                          .nodes = 1,
                                          .gpus = 8,
                                          .topology = "rail-optimized",
                                          .sequence_length = 800'000,
                                          .text = "scenario: example\nmodel: llama-3.1-8b\n"},
                             .model = {.name = "llama-3.1-8b",
                                       .model_type = "llama",
                                       .parameters = 8'030'261'248,
                                       .active_parameters = 8'030'261'248,
                                       .layers = 32,
                                       .hidden = 4096,
                                       .heads = 32,
                                       .kv_heads = 8,
                                       .head_dim = 128,
                                       .ffn = 14336,
                                       .vocab = 128256,
                                       .max_positions = 131072,
                                       .attention = "grouped-query",
                                       .mlp = "gated",
                                       .ulysses_degrees = {1, 2, 4, 8, 16, 32}},
                             .topology = {.vertices = {{"gpu 0", "gpu", 0}, {"spine", "network_switch", std::nullopt}},
                                          .links = {{0, 1, "nvlink", 450e9}, {1, 0, "nvlink", 450e9}},
                                          .omitted_nodes = 3},
                             .parameters = {{"gpu.h100-sxm.memory", "80GiB", "data sheet", "datasheet", 0.01}}};
  study.plans = {
      {.name = "ulysses=8", .options = {{"ulysses", "8"}}, .global_batch = 1, .figures = figures(100, 2, 60)},
      {.name = "ring=8", .global_batch = 1, .figures = figures(125, 27, 79)},
      {.name = "tensor=8",
       .global_batch = 1,
       .does_not_fit = {"does not fit: 92 of 80 GiB; logits 90 GiB"},
       .suggestions = {"turn on tiled_loss", "780,000 tokens"},
       .figures = figures(110, 9, 92)},
      {.name = "ulysses=7",
       .global_batch = 1,
       .infeasible = {{.reason = "32 heads do not divide by 7",
                       .numbers = {{"heads", 32.0}, {"ulysses", 7.0}},
                       .suggestion = "ulysses 8"}}}};
  return study;
}

/// The same plans asked for their longest sequences: two are stopped by memory, one reaches the end, one never runs.
inline results::StudyResult longest_example() {
  using results::Limit;
  results::StudyResult study = example();
  study.plans[0].longest = {.tokens = 1'600'000,
                            .limit = Limit::gpu_memory,
                            .next_tokens = 1'606'000,
                            .reasons = {"does not fit: 80.1 of 80.0 GiB; logits 60 GiB"},
                            .lifts = {{"tiled_loss: true", 3'200'000, Duration(400 * kSecond)},
                                      {"zero: 3", 1'700'000, Duration(110 * kSecond)}}};
  study.plans[1].longest = {.tokens = 1'500'000,
                            .limit = Limit::host_memory,
                            .next_tokens = 1'506'000,
                            .reasons = {"does not fit: 2049.0 of 2048.0 GiB of host memory a node"}};
  study.plans[2].figures = figures(110, 9, 60);
  study.plans[2].does_not_fit.clear();
  study.plans[2].suggestions.clear();
  study.plans[2].longest = {.tokens = 2'147'483'648,
                            .limit = Limit::sequence_bound,
                            .reasons = {"2,147,483,648 tokens are the most that a scenario can ask for"}};
  study.plans[3].longest = {.limit = Limit::heads, .reasons = {"32 heads do not divide by 7"}};
  return study;
}

}  // namespace ulysim::reports
