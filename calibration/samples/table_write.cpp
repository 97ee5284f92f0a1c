// Samples as rows: every column that any kind has, empty where it does not apply.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "calibration/samples/names.h"
#include "calibration/samples/table.h"
#include "calibration/samples/text.h"
#include "sim/base/check.h"

namespace ulysim::calibration {
namespace {

/// Names are the user's; blanks round a cell do not count.
std::string cell_of(const std::string& name) {
  return std::string(trimmed(printable(name)));
}

class Cells {
 public:
  void text(std::string_view column, std::string_view value) {
    cells_.push_back({.column = column, .text = std::string(value)});
  }
  void number(std::string_view column, std::optional<double> value) {
    ULYSIM_CHECK(!value || std::isfinite(*value), "a sample is not finite: {}", *value);
    cells_.push_back({.column = column, .text = value ? fmt::to_string(*value) : "", .kind = Cell::Kind::number});
  }
  void count(std::string_view column, std::optional<std::int64_t> value) {
    cells_.push_back({.column = column, .text = value ? fmt::to_string(*value) : "", .kind = Cell::Kind::number});
  }
  void truth(std::string_view column, std::optional<bool> value) {
    cells_.push_back({.column = column, .text = !value ? "" : *value ? "true" : "false", .kind = Cell::Kind::truth});
  }
  [[nodiscard]] std::vector<Cell> take() { return std::move(cells_); }

 private:
  std::vector<Cell> cells_;
};

/// What a probe's own columns hold; absent where its kind has no such column.
struct ProbeColumns {
  std::string_view collective{}, via{}, path{}, precision{}, implementation{}, direction{}, mask{}, scheme{};
  std::optional<bool> in_place{};
  std::optional<std::int64_t> bytes{}, m{}, n{}, k{}, batch{}, sequences{}, heads{}, kv_heads{}, head_dim{}, queries{},
      keys{};
};

struct Columns {
  ProbeColumns operator()(const GemmProbe& p) const {
    return {.precision = p.precision ? name_of(*p.precision) : "", .m = p.m, .n = p.n, .k = p.k, .batch = p.batch};
  }
  ProbeColumns operator()(const AttentionProbe& p) const {
    return {.implementation = name_of(p.implementation),
            .direction = name_of(p.pass),
            .mask = name_of(p.mask),
            .sequences = p.sequences,
            .heads = p.heads,
            .kv_heads = p.kv_heads,
            .head_dim = p.head_dim,
            .queries = p.queries,
            .keys = p.keys};
  }
  ProbeColumns operator()(const CopyProbe& p) const { return {.path = name_of(p.path), .bytes = p.bytes}; }
  ProbeColumns operator()(const CollectiveProbe& p) const {
    return {.collective = info_of(p.collective).name, .via = name_of(p.via), .in_place = p.in_place, .bytes = p.bytes};
  }
  ProbeColumns operator()(const LayerProbe& p) const {
    return {.direction = name_of(p.pass),
            .mask = name_of(p.mask),
            .scheme = name_of(p.scheme),
            .heads = p.heads,
            .kv_heads = p.kv_heads,
            .head_dim = p.head_dim,
            .queries = p.tokens,
            .keys = p.tokens};
  }
};

std::string csv_text(std::string text) {
  if (!text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos) {
    text.insert(0, "'");  // no formula (OWASP, CSV injection)
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c;
    out += c == '"' ? "\"" : "";
  }
  return out + '"';
}

}  // namespace

std::vector<Cell> columns_of(const Sample& sample) {
  const ProbeColumns p = std::visit(Columns(), sample.probe);
  const bool collective = std::holds_alternative<CollectiveProbe>(sample.probe);
  const std::optional<double> rate = rate_of(sample);
  Cells cells;
  cells.text("kind", kind_of(sample.probe));
  cells.text("collective", p.collective);
  cells.count("ranks", sample.ranks);
  cells.count("bytes", p.bytes);
  cells.number("time_s", sample.seconds);
  cells.number("bus_bandwidth_gb_s", collective ? rate : std::nullopt);
  cells.truth("in_place", p.in_place);
  cells.text("via", p.via);
  cells.text("path", p.path);
  cells.text("precision", p.precision);
  cells.count("m", p.m);
  cells.count("n", p.n);
  cells.count("k", p.k);
  cells.count("batch", p.batch);
  cells.text("scheme", p.scheme);
  cells.text("implementation", p.implementation);
  cells.text("direction", p.direction);
  cells.text("mask", p.mask);
  cells.count("sequences", p.sequences);
  cells.count("heads", p.heads);
  cells.count("kv_heads", p.kv_heads);
  cells.count("head_dim", p.head_dim);
  cells.count("queries", p.queries);
  cells.count("keys", p.keys);
  cells.number("tflops", collective ? std::nullopt : rate);
  cells.number("spread", sample.spread);
  cells.count("runs", sample.runs);
  cells.text("regime", sample.regime ? name_of(*sample.regime) : "");
  cells.number("clock_mhz", sample.clock_mhz);
  cells.number("power_w", sample.power_w);
  cells.text("gpu", cell_of(sample.gpu));
  cells.text("fabric", cell_of(sample.fabric));
  cells.text("software", cell_of(sample.software));
  cells.text("source", cell_of(sample.source));
  return cells.take();
}

std::string sample_header() {
  std::vector<std::string_view> names;
  for (const Cell& cell : columns_of({})) {
    names.push_back(cell.column);
  }
  return fmt::format("{}\n", fmt::join(names, ","));
}

std::string sample_row(const Sample& sample) {
  std::vector<std::string> texts;
  for (Cell& cell : columns_of(sample)) {
    texts.push_back(csv_text(std::move(cell.text)));
  }
  return fmt::format("{}\n", fmt::join(texts, ","));
}

}  // namespace ulysim::calibration
