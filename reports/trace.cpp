// Chrome trace events (the "Trace Event Format"), which Perfetto reads: one process per simulated class of ranks, one
// thread per stream, complete events in microseconds with three decimals, a counter for GPU memory.

#include <fmt/format.h>

#include <iterator>

#include "reports/factories.h"
#include "sim/config/write_json.h"

namespace ulysim::reports {
namespace {

/// Picoseconds as microseconds to the nanosecond. Begin and end are rounded each for itself, so that ops that follow
/// each other never overlap.
std::int64_t nanoseconds(Instant at) {
  return (at.value() + 500) / 1000;
}

std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

class EventList {
 public:
  void add(const std::string& event) {
    out_ += first_ ? "\n" : ",\n";
    out_ += event;
    first_ = false;
  }
  [[nodiscard]] std::string text() && { return std::move(out_) + "\n]}\n"; }

 private:
  std::string out_{"{\"displayTimeUnit\":\"ms\",\"traceEvents\":["};
  bool first_{true};
};

void add_name(EventList& events, const char* what, std::size_t pid, std::size_t tid, const std::string& name) {
  events.add(
      fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, pid, tid, config::json_string(name)));
}

void add_rank(EventList& events, std::size_t pid, const results::TraceRank& rank, const std::string& plan) {
  add_name(events, "process_name", pid, 0, fmt::format("{}: {}", plan, rank.name));
  for (std::size_t s = 0; s < rank.streams.size(); ++s) {
    add_name(events, "thread_name", pid, s + 1, rank.streams[s]);
    events.add(fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                           pid, s + 1, s));
  }
  for (const results::TraceSpan& span : rank.spans) {
    const std::int64_t begin = nanoseconds(span.begin);
    events.add(fmt::format(R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{}}})", config::json_string(span.name),
                           config::json_string(span.purpose), pid, span.stream + 1, microseconds(begin),
                           microseconds(nanoseconds(span.end) - begin)));
  }
  for (const results::MemorySample& sample : rank.gpu_memory) {
    events.add(fmt::format(R"({{"ph":"C","name":"GPU memory","pid":{},"tid":0,"ts":{},"args":{{"GiB":{:.4f}}}}})", pid,
                           microseconds(nanoseconds(sample.at)), gibibytes(sample.allocated)));
  }
}

class TraceWriter final : public ReportWriter {
 public:
  [[nodiscard]] std::string name() const override { return "trace"; }
  [[nodiscard]] std::string summary() const override { return "the timeline as Chrome trace events, for Perfetto"; }
  [[nodiscard]] std::string file_name() const override { return "trace.json"; }
  [[nodiscard]] std::optional<std::string> write(const Report& report, const Style&) const override {
    const auto* const* study = std::get_if<const results::StudyResult*>(&report);
    if (study == nullptr) {
      return std::nullopt;
    }
    EventList events;
    std::size_t pid = 0;
    for (const results::PlanResult& plan : (*study)->plans) {
      if (!plan.figures || !plan.figures->trace) {
        continue;
      }
      for (const results::TraceRank& rank : plan.figures->trace->ranks) {
        add_rank(events, ++pid, rank, plan.name);
      }
    }
    return std::move(events).text();
  }
};

}  // namespace

const ReportWriter& trace_writer() {
  static const TraceWriter writer;
  return writer;
}

}  // namespace ulysim::reports
