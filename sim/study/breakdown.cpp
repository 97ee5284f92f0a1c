#include "sim/study/breakdown.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/check.h"

namespace ulysim::study {

namespace {

using workload::Op;
using workload::Purpose;
using workload::Stream;

enum class Part : std::uint8_t {
  attention,
  gemm,
  memory_bound,
  host_issue,
  exposed_communication,
  exposed_offload,
  optimizer,
  bubble,
  other,
};
constexpr std::array<const char*, 9> kPartNames{
    "attention",       "gemm",      "memory_bound", "host_issue", "exposed_communication",
    "exposed_offload", "optimizer", "bubble",       "other"};

Part part_of(const Op& op) {
  switch (op.purpose) {
    case Purpose::attention:
      return Part::attention;
    case Purpose::gemm:
      return Part::gemm;
    case Purpose::memory_bound:
      return Part::memory_bound;
    case Purpose::optimizer:
      return Part::optimizer;
    case Purpose::host:
      return Part::host_issue;
    case Purpose::checkpoint_offload:
    case Purpose::optimizer_offload:
    case Purpose::parameter_offload:
      return Part::exposed_offload;
    case Purpose::tensor_parallel:
    case Purpose::ulysses:
    case Purpose::ring:
    case Purpose::parameters:
    case Purpose::gradients:
    case Purpose::expert:
    case Purpose::pipeline:
      return Part::exposed_communication;
  }
  return Part::other;
}

class Walker {
 public:
  Walker(const workload::Schedule& schedule, const results::RankTimeline& rank)
      : schedule_(schedule), spans_(rank.spans) {
    for (std::uint32_t op = 0; op < schedule.ops.size(); ++op) {
      if (schedule.ops[op].op->host_waits) {
        host_waits_.push_back(op);
      }
    }
  }

  Breakdown run(Instant end) {
    Instant at{};
    for (const std::uint32_t op : schedule_.streams[static_cast<std::size_t>(Stream::compute)]) {
      gap(at, spans_[op].begin, op);
      count(op, spans_[op].end - std::max(at, spans_[op].begin));
      at = std::max(at, spans_[op].end);
    }
    // What is left runs beside or after the last kernel; it ends with the op that ends last.
    std::uint32_t last = 0;
    for (std::uint32_t op = 0; op < spans_.size(); ++op) {
      last = spans_[op].end > spans_[last].end ? op : last;
    }
    if (!spans_.empty() && at < end) {
      at = behind(at, end, last);
      add(Part::other, end - at);
    }
    Breakdown result;
    for (std::size_t p = 0; p < kPartNames.size(); ++p) {
      result.parts.push_back({.name = kPartNames.at(p), .time = parts_.at(p)});
    }
    result.exposed_by_kind = by_kind_;
    result.exposed_by_purpose = by_purpose_;
    return result;
  }

 private:
  void add(Part part, Duration time) { parts_.at(static_cast<std::size_t>(part)) += time; }

  /// `time` of the step in which only `op` moved on.
  void count(std::uint32_t index, Duration time) {
    const Op& op = *schedule_.ops[index].op;
    add(part_of(op), time);
    if (const auto kind = kind_of(op)) {
      by_kind_.at(static_cast<std::size_t>(*kind)) += time;
      by_purpose_.at(static_cast<std::size_t>(op.purpose)) += time;
    }
  }

  /// [begin, end) within the span of `op`.
  void count_run(std::uint32_t op, Instant begin, Instant end) {
    Instant moving = begin;
    if (std::holds_alternative<workload::PipelineWork>(schedule_.ops[op].op->work)) {
      moving = std::clamp(spans_[op].joined, begin, end);
      add(Part::bubble, moving - begin);
    }
    count(op, end - moving);
  }

  /// The compute stream idles from `from` to `to`, when `op` starts.
  void gap(Instant from, Instant to, std::uint32_t op) {
    if (to <= from) {
      return;
    }
    const Instant counted = before(from, to, op);
    add(Part::other, to - counted);
  }

  /// Counts [from, to) by what `op` waited for before it began at `to`; returns up to where it is accounted for.
  Instant before(Instant from, Instant to, std::uint32_t op) {
    const results::Span& span = spans_[op];
    switch (span.cause) {
      case results::Cause::dependency:
      case results::Cause::stream:
      case results::Cause::credit:
        if (span.cause_op != op && spans_[span.cause_op].end <= to && spans_[span.cause_op].end > from) {
          return behind(from, to, span.cause_op);
        }
        break;
      case results::Cause::issue:
        return host(from, to);
      case results::Cause::peers:
        add(Part::bubble, to - from);
        return to;
      case results::Cause::nothing:
        break;
    }
    return from;
  }

  /// Counts [from, to) where `op` ends last: its own run, then what held it up.
  Instant behind(Instant from, Instant to, std::uint32_t op) {
    Instant upper = to;
    std::uint32_t at = op;
    // From the end backwards: each step ends earlier than the last, so this ends.
    while (upper > from) {
      const results::Span& span = spans_[at];
      const Instant begin = std::max(from, span.begin);
      if (begin < upper) {
        count_run(at, begin, upper);
        upper = begin;
      }
      if (upper <= from) {
        break;
      }
      const bool follows = span.cause == results::Cause::dependency || span.cause == results::Cause::stream ||
                           span.cause == results::Cause::credit;
      if (!follows || span.cause_op == at || spans_[span.cause_op].end > upper ||
          spans_[span.cause_op].begin >= span.begin) {
        const Part rest = span.cause == results::Cause::issue   ? Part::host_issue
                          : span.cause == results::Cause::peers ? Part::bubble
                                                                : Part::other;
        if (rest == Part::host_issue) {
          static_cast<void>(host(from, upper));
        } else {
          add(rest, upper - from);
        }
        return to;
      }
      at = span.cause_op;
    }
    return to;
  }

  /// The host had not issued yet: it was busy, or it waited itself for an op.
  Instant host(Instant from, Instant to) {
    Instant at = from;
    for (const std::uint32_t op : host_waits_) {
      const results::Span& span = spans_[op];
      const Instant begin = std::max(at, span.begin);
      const Instant end = std::min(to, span.end);
      if (begin < end) {
        add(Part::host_issue, begin - at);
        count(op, end - begin);
        at = end;
      }
    }
    add(Part::host_issue, to - at);
    return to;
  }

  const workload::Schedule& schedule_;
  const std::vector<results::Span>& spans_;
  std::vector<std::uint32_t> host_waits_;
  std::array<Duration, kPartNames.size()> parts_{};
  std::array<Duration, workload::kCollectiveKinds> by_kind_{};
  std::array<Duration, workload::kPurposes> by_purpose_{};
};

}  // namespace

std::optional<workload::CollectiveKind> kind_of(const Op& op) {
  if (std::holds_alternative<workload::PipelineWork>(op.work)) {
    return workload::CollectiveKind::send_recv;
  }
  const auto* work = std::get_if<workload::CollectiveWork>(&op.work);
  return work == nullptr ? std::nullopt : std::optional(work->kind);
}

const results::RankTimeline& last_rank(std::span<const workload::Schedule> schedules,
                                       const results::Timeline& timeline) {
  ULYSIM_CHECK(!timeline.ranks.empty(), "a timeline without ranks");
  const auto measure = [&](const results::RankTimeline& rank) {
    Instant end{};
    for (const results::Span& span : rank.spans) {
      end = std::max(end, span.end);
    }
    Duration busy{};
    for (const std::uint32_t op : schedules[rank.role].streams[static_cast<std::size_t>(Stream::compute)]) {
      busy += rank.spans[op].end - rank.spans[op].begin;
    }
    return std::pair(end, busy);
  };
  const results::RankTimeline* last = &timeline.ranks.front();
  auto most = measure(*last);
  for (const results::RankTimeline& rank : timeline.ranks) {
    const auto measured = measure(rank);
    if (measured.first > most.first || (measured.first == most.first && measured.second > most.second)) {
      last = &rank;
      most = measured;
    }
  }
  return *last;
}

Breakdown break_down(const workload::Schedule& schedule, const results::RankTimeline& rank, Instant end) {
  Breakdown result = Walker(schedule, rank).run(end);
  Duration sum{};
  for (const results::NamedDuration& part : result.parts) {
    sum += part.time;
  }
  ULYSIM_CHECK(sum == end - Instant{}, "the breakdown sums to {} ps of {} ps", sum.value(), end.value());
  return result;
}

}  // namespace ulysim::study
