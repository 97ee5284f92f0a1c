// Chrome trace events (the "Trace Event Format"), which Perfetto reads: one process per simulated class of ranks, one
// thread per stream; complete events in microseconds with three decimals; a counter for GPU memory in each process,
// and one process for the links with a counter for each kind; flow events between the threads of sender and receiver.
// A flow binds to the slice that encloses its instant on its thread, so slices that take no time have none.

#include <fmt/format.h>

#include <algorithm>

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
  void name(const char* what, std::size_t pid, std::size_t tid, const std::string& name) {
    add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, pid, tid,
                    config::json_string(name)));
  }
  void sort(const char* what, std::size_t pid, std::size_t tid, std::size_t index) {
    add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", what, pid, tid, index));
  }
  void counter(const std::string& name, std::size_t pid, Instant at, const std::string& value) {
    add(fmt::format(R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{{{}}}}})", config::json_string(name), pid,
                    microseconds(nanoseconds(at)), value));
  }
  [[nodiscard]] std::string text() && { return std::move(out_) + "\n]}\n"; }

 private:
  std::string out_{"{\"displayTimeUnit\":\"ms\",\"traceEvents\":["};
  bool first_{true};
};

/// Writes the plans one after the other; processes and flows are numbered through.
class TraceText {
 public:
  void add(const results::Trace& trace, const std::string& plan) {
    const std::size_t first = pid_ + 1;
    for (const results::TraceRank& rank : trace.ranks) {
      add_rank(rank, plan);
    }
    for (const results::TraceFlow& flow : trace.flows) {
      add_flow(flow, trace, first);
    }
    add_loads(trace.loads, plan);
  }
  [[nodiscard]] std::string text() && { return std::move(events_).text(); }

 private:
  void begin_process(const std::string& name) {
    ++pid_;
    events_.name("process_name", pid_, 0, name);
    events_.sort("process_sort_index", pid_, 0, pid_);
  }

  void add_rank(const results::TraceRank& rank, const std::string& plan) {
    begin_process(fmt::format("{}: {}", plan, rank.name));
    for (std::size_t s = 0; s < rank.streams.size(); ++s) {
      events_.name("thread_name", pid_, s + 1, rank.streams[s]);
      events_.sort("thread_sort_index", pid_, s + 1, s);
    }
    for (const results::TraceSpan& span : rank.spans) {
      const std::int64_t begin = nanoseconds(span.begin);
      events_.add(fmt::format(R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{}}})",
                              config::json_string(span.name), config::json_string(span.purpose), pid_, span.stream + 1,
                              microseconds(begin), microseconds(nanoseconds(span.end) - begin)));
    }
    for (const results::MemorySample& sample : rank.gpu_memory) {
      events_.counter("GPU memory", pid_, sample.at, fmt::format(R"("GiB":{:.4f})", gibibytes(sample.allocated)));
    }
  }

  /// From where the sender begins to where both are there.
  void add_flow(const results::TraceFlow& flow, const results::Trace& trace, std::size_t first) {
    const results::TraceSpan& from = trace.ranks[flow.from.rank].spans[flow.from.span];
    const results::TraceSpan& to = trace.ranks[flow.to.rank].spans[flow.to.span];
    const std::int64_t sent = nanoseconds(from.begin);
    const std::int64_t met = std::max(sent, nanoseconds(to.begin));
    if (nanoseconds(from.end) <= sent || nanoseconds(to.end) <= met) {
      return;
    }
    const std::string what = fmt::format(R"("name":{},"cat":"flow","id":{})", config::json_string(flow.name), ++flows_);
    events_.add(fmt::format(R"({{"ph":"s",{},"pid":{},"tid":{},"ts":{}}})", what, first + flow.from.rank,
                            from.stream + 1, microseconds(sent)));
    events_.add(fmt::format(R"({{"ph":"f","bp":"e",{},"pid":{},"tid":{},"ts":{}}})", what, first + flow.to.rank,
                            to.stream + 1, microseconds(met)));
  }

  void add_loads(const std::vector<results::LinkLoadCurve>& loads, const std::string& plan) {
    const auto used = [](const results::LinkLoadCurve& curve) { return !curve.samples.empty(); };
    if (std::none_of(loads.begin(), loads.end(), used)) {
      return;
    }
    begin_process(fmt::format("{}: links", plan));
    for (const results::LinkLoadCurve& curve : loads) {
      for (const results::LoadSample& sample : curve.samples) {
        events_.counter(curve.kind + ", busiest link", pid_, sample.at,
                        fmt::format(R"("%":{:.2f})", sample.busiest * 100.0));
      }
    }
  }

  EventList events_;
  std::size_t pid_{};
  std::size_t flows_{};
};

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
    TraceText text;
    for (const results::PlanResult& plan : (*study)->plans) {
      if (plan.figures && plan.figures->trace) {
        text.add(*plan.figures->trace, plan.name);
      }
    }
    return std::move(text).text();
  }
};

}  // namespace

const ReportWriter& trace_writer() {
  static const TraceWriter writer;
  return writer;
}

}  // namespace ulysim::reports
