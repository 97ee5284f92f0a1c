#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/infeasible.h"
#include "sim/base/quantity.h"
#include "sim/results/timeline.h"

namespace ulysim::results {

/// Whether the plan's memory holds. risky: it does, by less than the framework's margin.
enum class Fit : std::uint8_t { yes, risky, no };

struct NamedDuration {
  std::string name{};
  Duration time{};
};

struct NamedBytes {
  std::string name{};
  Bytes bytes{};
};

/// What one kind of collective, or one purpose, costs the GPU that sends most, in one step.
struct CommunicationUse {
  std::string name{};     ///< "all_to_all" …, or the purpose: "ulysses", "parameters" …
  Bytes bytes_per_gpu{};  ///< logical: size × bus-bandwidth factor, whatever the algorithm
  Duration time{};        ///< from arrival to end, hidden or not
  Duration exposed{};     ///< of `time`, what compute waited for
};

/// One tensor (or group of equal ones) that is alive when GPU memory peaks.
struct PeakTensor {
  std::string name{};
  std::string kind{};  ///< "activations", "logits" …
  Bytes bytes{};
  std::int64_t count{1};
};

/// Allocated bytes from `at` on. The samples of a curve ascend in `at`.
struct MemorySample {
  Instant at{};
  Bytes allocated{};
};

struct LinkLoad {
  std::string name{};
  std::string kind{};     ///< "nvlink", "nic" …
  double capacity{};      ///< bytes per second, one direction
  double carried{};       ///< wire bytes over the step
  double utilization{};   ///< carried / (capacity · step time)
  std::int64_t links{1};  ///< links of this class
};

/// What filling sequences up costs. Model FLOPs, MFU and tokens count what is trained on only.
struct PaddingCost {
  double tokens{};          ///< of a step, over all sequences
  double share{};           ///< of all tokens that are worked on
  double extra_executed{};  ///< executed FLOPs, without recompute, over those of the unpadded sequences, minus 1
};

/// What a rank and its node hold while a checkpoint is loaded, before the first step.
struct LoadPeak {
  Bytes gpu{};
  Bytes host_per_node{};
};

/// Drives of a node that states are on.
struct NvmeUse {
  Bytes peak_per_node{};
  Bytes capacity_per_node{};
};

/// One executed op. `stream` indexes the streams of what holds it.
struct TraceSpan {
  std::string name{};
  std::string purpose{};  ///< category of the event: "attention", "ulysses" …
  std::uint32_t stream{};
  Instant begin{};
  Instant end{};
};

/// A message, or what one rank of a collective waits for: from a span of one `TraceRank` to a span of another.
struct TraceFlow {
  struct End {
    std::uint32_t rank{};  ///< index in `Trace::ranks`
    std::uint32_t span{};
  };
  std::string name{};
  End from{};
  End to{};
};

/// What one simulated rank did, for all `members` ranks of its class.
struct TraceRank {
  std::string name{};  ///< "rank 0 (of 8 alike)"
  std::int64_t members{1};
  std::vector<std::string> streams{};  ///< "compute", "ulysses_comm" …
  std::vector<TraceSpan> spans{};
  std::vector<MemorySample> gpu_memory{};
};

struct Trace {
  std::vector<TraceRank> ranks{};
  std::vector<TraceFlow> flows{};
  std::vector<LinkLoadCurve> loads{};
};

/// What all streams of a rank do while one layer is worked on in one direction.
struct LayerPhase {
  Instant begin{};
  Instant end{};
  std::vector<std::string> streams{};
  std::vector<TraceSpan> spans{};  ///< in order of begin; some reach beyond `begin` or `end`
  std::int64_t omitted_spans{};    ///< the shortest, where there are too many to be seen
};

/// A middle layer of the rank that ends last, in its first micro-batch there.
struct LayerTimeline {
  std::int64_t layer{};
  LayerPhase forward{};
  LayerPhase backward{};  ///< with what is recomputed for it
};

/// What the bytes of `Figures::memory_curve` are.
struct MemoryByKind {
  std::vector<std::string> kinds{};
  std::vector<std::vector<Bytes>> bytes{};  ///< by sample of the curve, then by kind; each sums to `allocated`
};

/// All figures of a simulated step. Fractions are of 1; tokens and FLOPs count the whole optimizer step.
struct Figures {
  Duration step_time{};
  double tokens_per_step{};  ///< padding not counted
  double tokens_per_s_per_gpu{};
  double mfu{};  ///< model FLOPs (causal half, no recompute) / (peak · time)
  double model_tflops_per_gpu{};
  double hardware_tflops_per_gpu{};       ///< executed kernel FLOPs
  std::optional<Duration> lower_bound{};  ///< the closed-form estimate of the same graph

  Bytes peak_gpu_memory{};     ///< device: reserved + context + NCCL; decides `fits`
  Bytes peak_gpu_allocated{};  ///< by the framework's allocator
  Bytes peak_gpu_reserved{};
  Bytes gpu_memory_capacity{};
  Bytes peak_host_memory_per_node{};
  Bytes host_memory_capacity_per_node{};
  std::vector<NamedBytes> memory{};          ///< of the device peak, by kind; sums to peak_gpu_memory
  std::vector<PeakTensor> peak_tensors{};    ///< largest first, at most 20
  std::vector<MemorySample> memory_curve{};  ///< allocated over the step, thinned to a few hundred samples
  MemoryByKind memory_by_kind{};
  std::vector<NamedBytes> host_memory{};  ///< of the host's peak, by kind; sums to peak_host_memory_per_node

  std::optional<LoadPeak> load_peak{};  ///< where the framework profile knows it
  std::optional<NvmeUse> nvme{};        ///< where the plan uses drives

  std::optional<PaddingCost> padding{};  ///< where sequences are padded
  /// Packed documents only: the query–key pairs of the rank that has most, over the average rank's.
  std::optional<double> attention_imbalance{};

  std::vector<CommunicationUse> communication{};             ///< by collective
  std::vector<CommunicationUse> communication_by_purpose{};  ///< the same bytes, by purpose
  /// Critical time of the last-finishing rank: attention, gemm, memory_bound, host_issue, exposed_communication,
  /// exposed_offload, optimizer, bubble, other, in this order; sums to step_time exactly.
  std::vector<NamedDuration> breakdown{};
  std::string bottleneck{};  ///< what binds, in words: "attention kernels (92% of the step)"
  std::vector<LinkLoad> links{};
  /// By link of the study's picture of the topology: its class, as an index of `links`; absent where it is not used.
  std::vector<std::optional<std::uint32_t>> picture_links{};
  std::optional<LayerTimeline> layer_timeline{};  ///< of models with layers

  Fit gpu_fit{Fit::yes};
  Fit host_fit{Fit::yes};
  Fit nvme_fit{Fit::yes};
  [[nodiscard]] Fit fit() const { return std::max({gpu_fit, host_fit, nvme_fit}); }

  // Of the whole training run, where the scenario says how many tokens it has.
  std::optional<double> total_days{};
  std::optional<double> total_gpu_hours{};
  std::optional<double> total_cost{};

  std::optional<Trace> trace{};  ///< where it was asked for
};

/// What stops a plan from a longer sequence.
enum class Limit : std::uint8_t {
  gpu_memory,
  host_memory,
  nvme,
  heads,           ///< heads do not divide by the degrees, at any length
  plan,            ///< the plan cannot run at any length for another reason
  sequence_bound,  ///< the longest sequence that a scenario or the simulator's clock takes is reached
};
/// "gpu-memory", "host-memory", "nvme", "heads", "plan", "sequence-bound".
[[nodiscard]] const char* name(Limit limit);

/// One more option, and how far it would reach.
struct Lift {
  std::string option{};  ///< as a plan's keys: "tiled_loss: true"
  std::int64_t max_sequence_length{};
  Duration step_time{};  ///< at that length
};

/// The longest sequence that a plan trains.
struct LongestSequence {
  std::optional<std::int64_t> tokens{};  ///< absent: none trains
  Limit limit{};
  std::optional<std::int64_t> next_tokens{};  ///< the next legal length, which `limit` stops
  std::vector<std::string> reasons{};         ///< why, there; of a plan that cannot run: its own
  std::vector<Lift> lifts{};                  ///< longest first
};

/// One plan of a study.
struct PlanResult {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> options{};  ///< every resolved key of the plan, in schema order
  std::int64_t global_batch{};                                 ///< sequences per optimizer step
  std::vector<Infeasible> infeasible{};     ///< why it cannot run at all; empty when `figures` is there
  std::vector<std::string> does_not_fit{};  ///< "does not fit: 92.1 of 80 GiB; logits 17.2 GiB"; also why it is risky
  std::vector<std::string> suggestions{};   ///< the fix beside the failure: "turn on tiled_loss"
  std::optional<Figures> figures{};         ///< also when it does not fit; absent only when infeasible
  /// Only of `maxseq`, whose figures are at that length (where none trains: at the shortest).
  std::optional<LongestSequence> longest{};

  [[nodiscard]] bool feasible() const { return figures.has_value(); }
  [[nodiscard]] bool fits() const { return figures && figures->fit() != Fit::no; }
};

}  // namespace ulysim::results
