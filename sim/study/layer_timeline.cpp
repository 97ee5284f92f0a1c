#include "sim/study/layer_timeline.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/study/trace.h"

namespace ulysim::study {

namespace {

/// More cannot be told apart on a screen.
constexpr std::size_t kMostSpans = 400;

struct Chosen {
  std::int32_t block{};
  std::int32_t micro_batch{};

  [[nodiscard]] bool is(const workload::Instance& instance) const {
    return instance.block == block && instance.micro_batch == micro_batch;
  }
};

/// The middle one of the layers that the role runs forward, where it first runs.
std::optional<Chosen> middle_layer(const workload::OpGraph& graph, const workload::Role& role) {
  std::vector<Chosen> layers;
  for (const workload::Instance& instance : role.program) {
    const bool layer =
        instance.phase == workload::Phase::forward && graph.of(instance).kind == workload::BlockKind::layer;
    const bool known =
        std::any_of(layers.begin(), layers.end(), [&](const Chosen& other) { return other.block == instance.block; });
    if (layer && !known) {
      layers.push_back({.block = instance.block, .micro_batch = instance.micro_batch});
    }
  }
  return layers.empty() ? std::nullopt : std::optional(layers[layers.size() / 2]);
}

class PhaseReader {
 public:
  PhaseReader(const workload::OpGraph& graph, const workload::Schedule& schedule, const results::RankTimeline& rank)
      : graph_(&graph), schedule_(&schedule), rank_(&rank) {}

  [[nodiscard]] results::LayerPhase read(const Chosen& layer, workload::Phase phase) const {
    results::LayerPhase out;
    const std::vector<bool> own = ops_of(layer, phase);
    set_window(own, out);
    std::vector<std::uint32_t> ops;
    for (std::uint32_t op = 0; op < rank_->spans.size(); ++op) {
      const results::Span& span = rank_->spans[op];
      if (span.begin < span.end && span.begin < out.end && span.end > out.begin) {
        ops.push_back(op);
      }
    }
    keep_longest(ops, out.omitted_spans);
    std::stable_sort(ops.begin(), ops.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return rank_->spans[a].begin < rank_->spans[b].begin; });
    add_spans(ops, own, out);
    return out;
  }

 private:
  [[nodiscard]] std::vector<bool> ops_of(const Chosen& layer, workload::Phase phase) const {
    std::vector<bool> own(schedule_->ops.size());
    const auto& program = graph_->roles[schedule_->role].program;
    for (std::size_t op = 0; op < own.size(); ++op) {
      const workload::Instance& instance = program[schedule_->ops[op].instance];
      own[op] = layer.is(instance) && instance.phase == phase;
    }
    return own;
  }

  /// From the layer's first kernel to its last. What it fetches ahead and sends away behind reaches beyond.
  void set_window(const std::vector<bool>& own, results::LayerPhase& out) const {
    bool first = true;
    for (const std::uint32_t op : schedule_->streams[static_cast<std::size_t>(workload::Stream::compute)]) {
      if (own[op]) {
        out.begin = first ? rank_->spans[op].begin : std::min(out.begin, rank_->spans[op].begin);
        out.end = std::max(out.end, rank_->spans[op].end);
        first = false;
      }
    }
  }

  void keep_longest(std::vector<std::uint32_t>& ops, std::int64_t& omitted) const {
    if (ops.size() <= kMostSpans) {
      return;
    }
    const auto length = [&](std::uint32_t op) { return rank_->spans[op].end - rank_->spans[op].begin; };
    std::stable_sort(ops.begin(), ops.end(), [&](std::uint32_t a, std::uint32_t b) { return length(a) > length(b); });
    omitted = static_cast<std::int64_t>(ops.size() - kMostSpans);
    ops.resize(kMostSpans);
  }

  void add_spans(const std::vector<std::uint32_t>& ops, const std::vector<bool>& own, results::LayerPhase& out) const {
    std::array<std::optional<std::uint32_t>, workload::kStreams> shown{};
    const auto stream_of = [&](std::uint32_t op) { return static_cast<std::size_t>(schedule_->ops[op].op->stream); };
    for (std::size_t stream = 0; stream < workload::kStreams; ++stream) {
      if (std::any_of(ops.begin(), ops.end(), [&](std::uint32_t op) { return stream_of(op) == stream; })) {
        shown.at(stream) = static_cast<std::uint32_t>(out.streams.size());
        out.streams.emplace_back(name(static_cast<workload::Stream>(stream)));
      }
    }
    for (const std::uint32_t op : ops) {
      const workload::Op& what = *schedule_->ops[op].op;
      out.spans.push_back({.name = own[op] ? what.name : label_of(*graph_, *schedule_, op),
                           .purpose = name(what.purpose),
                           .stream = *shown.at(stream_of(op)),
                           .begin = rank_->spans[op].begin,
                           .end = rank_->spans[op].end});
    }
  }

  const workload::OpGraph* graph_;
  const workload::Schedule* schedule_;
  const results::RankTimeline* rank_;
};

}  // namespace

std::optional<results::LayerTimeline> layer_timeline_of(const workload::OpGraph& graph,
                                                        const workload::Schedule& schedule,
                                                        const results::RankTimeline& rank) {
  const workload::Role& role = graph.roles[schedule.role];
  const std::optional<Chosen> layer = middle_layer(graph, role);
  if (!layer) {
    return std::nullopt;
  }
  const auto instance = std::find_if(role.program.begin(), role.program.end(),
                                     [&](const workload::Instance& one) { return layer->is(one); });
  const PhaseReader reader(graph, schedule, rank);
  return results::LayerTimeline{.layer = workload::layer_number(*instance),
                                .forward = reader.read(*layer, workload::Phase::forward),
                                .backward = reader.read(*layer, workload::Phase::backward)};
}

}  // namespace ulysim::study
