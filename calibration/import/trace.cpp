// Traces of the PyTorch profiler (pytorch/kineto libkineto/src/output_json.cpp): kernels of collectives carry what was
// sent ("Collective name", "In msg nelems", "Group size"), GEMMs and attention take their shape from the operator that
// launched them ("Input Dims" and "Concrete Inputs", with record_shapes=True). A trace may hold a gigabyte, so events
// are cut out of the text one by one and only telling ones are parsed.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "calibration/import/readers.h"
#include "calibration/import/trace_operators.h"
#include "calibration/samples/collective.h"
#include "calibration/samples/statistics.h"
#include "calibration/samples/text.h"
#include "sim/base/diagnostics.h"
#include "sim/config/document.h"

namespace ulysim::calibration {
namespace {

using config::Node;

constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
constexpr double kLeastMicroseconds = 1e-3;

/// Walks through JSON text without recursion: values are jumped over, brackets counted, strings respected.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  [[nodiscard]] int line() const { return line_; }
  void step() {
    line_ += peek() == '\n' ? 1 : 0;
    ++at_;
  }
  void skip(std::string_view characters) {
    while (!at_end() && characters.find(peek()) != std::string_view::npos) {
      step();
    }
  }
  /// The text of the value that starts here; shorter than a value when the text ends within it.
  std::string_view value() {
    if (at_end()) {
      ended_ = false;
      return {};
    }
    const std::size_t begin = at_;
    std::int64_t depth = 0;
    do {
      const char c = peek();
      if (c == '"') {
        string();
        continue;
      }
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      if (depth < 0 || (depth == 0 && (c == ',' || c == ':'))) {
        break;
      }
      step();
    } while (!at_end() && (depth > 0 || !ends_value()));
    ended_ = depth <= 0;
    return text_.substr(begin, at_ - begin);
  }
  /// Whether the last value was whole.
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  [[nodiscard]] bool ends_value() const {
    return std::string_view(",]}: \t\r\n").find(peek()) != std::string_view::npos || text_[at_ - 1] == '}' ||
           text_[at_ - 1] == ']' || text_[at_ - 1] == '"';
  }
  void string() {
    for (step(); !at_end() && peek() != '"'; step()) {
      if (peek() == '\\') {
        step();
      }
    }
    step();
    at_ = std::min(at_, text_.size());
  }

  std::string_view text_;
  std::size_t at_{};
  int line_{1};
  bool ended_{true};
};

const std::string& text_of(const Node* node, std::string_view key) {
  static const std::string kNone;
  const Node* found = node == nullptr ? nullptr : node->find(key);
  return found == nullptr ? kNone : found->text;
}

/// "[4, 4, 4]" is even, as is "[]"; "[4, 8]" is not.
bool is_even(std::string_view splits) {
  std::string_view first;
  for (std::string_view part : cells_of(splits, ',')) {
    part.remove_prefix(std::min(part.find_first_not_of("[ "), part.size()));
    part = part.substr(0, part.find_first_of(" ]"));
    if (!whole_number(part)) {
      continue;
    }
    first = first.empty() ? part : first;
    if (part != first) {
      return false;
    }
  }
  return true;
}

class TraceReader {
 public:
  TraceReader(const std::string& file, ImportedFile& out) : file_(&file), out_(&out) {}

  /// False when the text ended within an event.
  void events(Cursor& cursor) {
    cursor.step();
    for (;;) {
      cursor.skip(" \t\r\n,");
      if (cursor.at_end()) {
        out_->truncated = true;  // the closing bracket of a trace is optional to its viewers, an event is not
        return;
      }
      if (cursor.peek() == ']') {
        cursor.step();
        return;
      }
      const int line = cursor.line();
      const std::string_view text = cursor.value();
      if (!cursor.ended() || text.empty()) {
        out_->truncated = true;
        return;
      }
      if (text.find("\"Collective name\"") != std::string_view::npos ||
          text.find("\"External id\"") != std::string_view::npos) {
        event(text, line);
      } else if (text.find("\"nccl") != std::string_view::npos) {
        ++unnamed_;
      }
    }
  }

  void devices(std::string_view text, int line) {
    const std::optional<Node> node = parse(text, line);
    if (node && !node->items.empty()) {
      std::string_view name = text_of(&node->items.front(), "name");
      if (name.starts_with("NVIDIA ")) {
        name.remove_prefix(7);
      }
      out_->gpu = shown(trimmed(name));
    }
  }

  void finish(Diagnostics& diagnostics) {
    for (const auto& [id, probe] : operators_) {
      if (const auto kernels = kernels_.find(id); kernels != kernels_.end()) {
        times_of(probe, 1).push_back(kernels->second);
      }
    }
    for (const Series& series : series_) {
      add(series);
    }
    tell(diagnostics);
  }

 private:
  std::optional<Node> parse(std::string_view text, int line) {
    try {
      return config::parse_json(text, *file_);
    } catch (const InputError& error) {
      for (Diagnostic found : error.diagnostics()) {
        found.where.line += line - 1;
        broken_.error(found.where, found.message);
      }
      return std::nullopt;
    }
  }

  void event(std::string_view text, int line) {
    const std::optional<Node> node = parse(text, line);
    if (!node) {
      return;
    }
    const Node* args = node->find("args");
    const std::string& category = text_of(&*node, "cat");
    const std::string& id = text_of(args, "External id");
    if (category == "cpu_op") {
      if (const auto probe = probe_of_operator(*node); probe && !id.empty()) {
        operators_.insert_or_assign(id, *probe);
      }
      return;
    }
    const auto micro = printed_number(text_of(&*node, "dur"));
    if (category != "kernel" || !micro || micro->value < kLeastMicroseconds || micro->value > 1e12) {
      return;
    }
    if (const std::string& name = text_of(args, "Collective name"); !name.empty()) {
      collective(name, *args, micro->value / 1e6);
    } else if (!id.empty()) {
      kernels_[id] += micro->value / 1e6;  // split-K, a backward pass: several kernels are one operator
    }
  }

  void collective(const std::string& name, const Node& args, double seconds) {
    const CollectiveInfo* info = find_collective(name);
    const auto ranks = whole_number(text_of(&args, "Group size"));
    const auto in = whole_number(text_of(&args, "In msg nelems"));
    const auto out = whole_number(text_of(&args, "Out msg nelems"));
    const auto element = element_bytes(text_of(&args, "dtype"));
    const std::int64_t elements = std::max(in.value_or(0), out.value_or(0));
    if (info == nullptr || !ranks || *ranks < 2 || !element || elements <= 0 || elements > kMostElements) {
      ++unusable_;
    } else if (!is_even(text_of(&args, "In split size")) || !is_even(text_of(&args, "Out split size"))) {
      ++uneven_;
    } else {
      times_of(CollectiveProbe{.collective = info->id, .bytes = elements * *element}, *ranks).push_back(seconds);
      any_collective_ = true;
    }
  }

  struct Series {
    Probe probe{};
    std::int64_t ranks{};
    std::vector<double> seconds{};
  };

  std::vector<double>& times_of(const Probe& probe, std::int64_t ranks) {
    const auto found = std::find_if(series_.begin(), series_.end(),
                                    [&](const Series& one) { return one.probe == probe && one.ranks == ranks; });
    return (found != series_.end() ? *found : series_.emplace_back(Series{.probe = probe, .ranks = ranks})).seconds;
  }

  void add(const Series& series) {
    const Summary summary = summary_of(series.seconds);
    const auto runs = static_cast<std::int64_t>(series.seconds.size());
    out_->rows += runs;
    out_->samples.push_back({.probe = series.probe,
                             .gpu = out_->gpu,
                             .ranks = series.ranks,
                             .seconds = summary.median,
                             .spread = runs > 1 ? std::optional(summary.spread) : std::nullopt,
                             .runs = runs});
  }

  void tell(Diagnostics& diagnostics) {
    const auto note = [&](std::int64_t count, const char* what) {
      if (count > 0) {
        out_->notes.push_back(fmt::format("{} {}", count, what));
      }
    };
    note(unusable_, "collectives without a known name, size or group: skipped");
    note(uneven_, "all-to-alls with uneven splits: skipped");
    note(unnamed_, "NCCL events without PyTorch's metadata: skipped");
    if (any_collective_) {
      out_->notes.emplace_back("a collective's kernel also waits for the slowest rank: these times are upper bounds");
    }
    for (const Diagnostic& found : broken_.list()) {
      diagnostics.error(found.where, found.message);
    }
    if (out_->samples.empty() && diagnostics.empty()) {
      diagnostics.error(
          {.file = *file_, .line = 1, .column = 1},
          "no kernel of a collective with its size, and no bf16 GEMM or attention with its shape: profile with "
          "record_shapes=True, on GPUs, with a PyTorch that writes 'Collective name'");
    }
  }

  const std::string* file_;
  ImportedFile* out_;
  Diagnostics broken_;
  std::vector<Series> series_;
  std::map<std::string, Probe> operators_;
  std::map<std::string, double> kernels_;
  bool any_collective_{};
  std::int64_t unusable_{};
  std::int64_t uneven_{};
  std::int64_t unnamed_{};
};

}  // namespace

ImportedFile import_trace(std::string_view text, const std::string& file, const ImportHints& /*hints*/) {
  ImportedFile out{.format = "trace"};
  TraceReader reader(file, out);
  Cursor cursor(text);
  cursor.skip(" \t\r\n");
  if (cursor.peek() == '[') {
    reader.events(cursor);
  } else {
    cursor.step();
    while (!cursor.at_end() && cursor.peek() != '}') {
      cursor.skip(" \t\r\n,");
      const std::string_view key = cursor.value();
      cursor.skip(" \t\r\n:");
      const int line = cursor.line();
      if (key == "\"traceEvents\"" && cursor.peek() == '[') {
        reader.events(cursor);
      } else if (key == "\"deviceProperties\"") {
        reader.devices(cursor.value(), line);
      } else if (cursor.value().empty()) {
        break;
      }
      cursor.skip(" \t\r\n,");
    }
  }
  Diagnostics diagnostics;
  reader.finish(diagnostics);
  diagnostics.throw_if_any();
  return out;
}

}  // namespace ulysim::calibration
