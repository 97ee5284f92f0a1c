// Traces of the PyTorch profiler (pytorch/kineto libkineto/src/output_json.cpp): kernels of collectives carry what was
// sent ("Collective name", "In msg nelems", "Group size"), GEMMs take their shape from the operator that launched them
// ("Input Dims", with record_shapes=True). A trace may hold a gigabyte, so events are cut out of the text one by one
// and only telling ones are parsed.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "calibration/import/collective.h"
#include "calibration/import/readers.h"
#include "calibration/import/text.h"
#include "sim/base/diagnostics.h"
#include "sim/config/document.h"

namespace ulysim::calibration {
namespace {

using config::Node;

constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
constexpr std::int64_t kMostSide = std::int64_t{1} << 40;
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

struct CollectiveKey {
  std::string collective{};
  std::int64_t ranks{};
  std::int64_t bytes{};
  bool operator<(const CollectiveKey& other) const {
    return std::tie(collective, ranks, bytes) < std::tie(other.collective, other.ranks, other.bytes);
  }
};
struct GemmKey {
  std::int64_t m{};
  std::int64_t n{};
  std::int64_t k{};
  std::int64_t batch{1};
  bool operator<(const GemmKey& other) const {
    return std::tie(m, n, k, batch) < std::tie(other.m, other.n, other.k, other.batch);
  }
};

const std::string& text_of(const Node* node, std::string_view key) {
  static const std::string kNone;
  const Node* found = node == nullptr ? nullptr : node->find(key);
  return found == nullptr ? kNone : found->text;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

/// Median distance from the median, relative: one straggler does not make it wide.
double spread(const std::vector<double>& values) {
  const double centre = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) {
    distances.push_back(std::abs(value - centre));
  }
  return median(std::move(distances)) / centre;
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

std::vector<std::int64_t> dims_of(const Node& node) {
  std::vector<std::int64_t> dims;
  for (const Node& item : node.items) {
    const auto dim = whole_number(item.text);
    dims.push_back(dim && *dim <= kMostSide ? *dim : 0);
  }
  return dims;
}

/// Of aten::mm, aten::addmm and aten::bmm in bf16.
std::optional<GemmKey> gemm_of(const Node& event) {
  const std::string& name = text_of(&event, "name");
  const std::size_t first = name == "aten::mm" || name == "aten::bmm" ? 0 : 1;
  if (first == 1 && name != "aten::addmm") {
    return std::nullopt;
  }
  const Node* args = event.find("args");
  const Node* dims = args == nullptr ? nullptr : args->find("Input Dims");
  const Node* types = args == nullptr ? nullptr : args->find("Input type");
  if (dims == nullptr || types == nullptr || dims->items.size() < first + 2 || types->items.size() < first + 2 ||
      !types->items[first].text.ends_with("BFloat16")) {
    return std::nullopt;
  }
  const auto a = dims_of(dims->items[first]);
  const auto b = dims_of(dims->items[first + 1]);
  const std::size_t rank = name == "aten::bmm" ? 3 : 2;
  if (a.size() != rank || b.size() != rank || a[rank - 1] != b[rank - 2]) {
    return std::nullopt;
  }
  const GemmKey key{.m = a[rank - 2], .n = b[rank - 1], .k = a[rank - 1], .batch = rank == 3 ? a[0] : 1};
  return std::min({key.m, key.n, key.k, key.batch}) > 0 ? std::optional(key) : std::nullopt;
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
    for (const auto& [id, key] : gemms_) {
      if (const auto kernels = kernels_.find(id); kernels != kernels_.end()) {
        gemm_times_[key].push_back(kernels->second);
      }
    }
    for (const auto& [key, times] : collective_times_) {
      const CollectiveInfo& info = *find_collective(key.collective);
      const double seconds = median(times);
      const double rate = static_cast<double>(key.bytes) / seconds / 1e9 * bus_factor(info, key.ranks);
      add({.what = CollectiveRun{.collective = key.collective, .ranks = key.ranks, .bytes = key.bytes},
           .seconds = seconds,
           .bus_bandwidth_gb_s = rate},
          times);
    }
    for (const auto& [key, times] : gemm_times_) {
      const double seconds = median(times);
      const double flops = 2.0 * static_cast<double>(key.m) * static_cast<double>(key.n) * static_cast<double>(key.k) *
                           static_cast<double>(key.batch);
      add({.what = kernel::Gemm{.m = key.m, .n = key.n, .k = key.k, .batch = key.batch},
           .seconds = seconds,
           .tflops = flops / seconds / 1e12},
          times);
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
      if (const auto key = gemm_of(*node); key && !id.empty()) {
        gemms_.insert_or_assign(id, *key);
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
      kernels_[id] += micro->value / 1e6;  // split-K: several kernels are one product
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
      collective_times_[{.collective = std::string(info->name), .ranks = *ranks, .bytes = elements * *element}]
          .push_back(seconds);
    }
  }

  void add(Measurement sample, const std::vector<double>& times) {
    sample.spread = times.size() > 1 ? std::optional(spread(times)) : std::nullopt;
    sample.runs = static_cast<std::int64_t>(times.size());
    sample.gpu = out_->gpu;
    out_->rows += sample.runs;
    out_->samples.push_back(std::move(sample));
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
    if (!collective_times_.empty()) {
      out_->notes.emplace_back("a collective's kernel also waits for the slowest rank: these times are upper bounds");
    }
    for (const Diagnostic& found : broken_.list()) {
      diagnostics.error(found.where, found.message);
    }
    if (out_->samples.empty() && diagnostics.empty()) {
      diagnostics.error({.file = *file_, .line = 1, .column = 1},
                        "no kernel of a collective with its size, and no bf16 GEMM with its shape: profile with "
                        "record_shapes=True, on GPUs, with a PyTorch that writes 'Collective name'");
    }
  }

  const std::string* file_;
  ImportedFile* out_;
  Diagnostics broken_;
  std::map<CollectiveKey, std::vector<double>> collective_times_;
  std::map<GemmKey, std::vector<double>> gemm_times_;
  std::map<std::string, GemmKey> gemms_;
  std::map<std::string, double> kernels_;
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
