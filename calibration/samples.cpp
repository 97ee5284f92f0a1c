#include "calibration/samples.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <span>
#include <utility>
#include <variant>

#include "sim/base/diagnostics.h"
#include "sim/base/parse_quantity.h"

namespace ulysim::calibration {
namespace {

using kernel::AttentionKernel;
using kernel::Direction;

constexpr std::string_view kGemmHeader = "gpu,precision,m,n,k,tflops,spread,regime,source";
constexpr std::string_view kAttentionHeader =
    "gpu,implementation,direction,mask,sequences,heads,kv_heads,head_dim,queries,keys,tflops,spread,regime,source";
constexpr double kTera = 1e12;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// Reads the cells of one row left to right.
class Row {
 public:
  Row(std::string_view line, Location where, Diagnostics& diagnostics)
      : cells_(split(line, ',')), where_(std::move(where)), diagnostics_(&diagnostics) {}

  [[nodiscard]] std::size_t cells() const { return cells_.size(); }
  std::string_view text() { return cells_.at(next_++); }

  std::int64_t count() { return number(parse_count(text()), std::int64_t{1}); }
  double positive() {
    const auto value = number(parse_number(text()), 1.0);
    if (value <= 0.0) {
      error("a rate must be above 0");
    }
    return value;
  }
  std::optional<double> maybe_number() {
    const std::string_view cell = text();
    return cell.empty() ? std::nullopt : std::optional(number(parse_number(cell), 0.0));
  }
  std::size_t choice(std::span<const std::string_view> allowed) {
    const std::string_view cell = text();
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      if (allowed[i] == cell) {
        return i;
      }
    }
    error(fmt::format("cannot read '{}'; known: {}", cell, fmt::join(allowed, ", ")));
    return 0;
  }

 private:
  template <class T>
  T number(const Parsed<T>& parsed, T fallback) {
    if (const auto* value = std::get_if<T>(&parsed)) {
      return *value;
    }
    error(std::get<std::string>(parsed));
    return fallback;
  }
  void error(std::string message) { diagnostics_->error(where_, std::move(message)); }

  std::vector<std::string_view> cells_;
  Location where_;
  Diagnostics* diagnostics_;
  std::size_t next_{};
};

constexpr std::string_view kRegimes[] = {"burst", "sustained"};
constexpr std::string_view kPrecisions[] = {"bf16", "fp8", "mxfp8", "nvfp4"};
constexpr std::string_view kImplementations[] = {"flash-attention-2", "flash-attention-3", "cudnn", "sdpa"};
constexpr std::string_view kDirections[] = {"forward", "backward", "both", "forward+kv-write"};
constexpr std::size_t kBackwardOnly = 1;
constexpr std::size_t kBoth = 2;
constexpr std::size_t kForwardWithKvWrite = 3;
constexpr std::string_view kMasks[] = {"full", "causal"};

void read_measurement(Row& row, Sample& sample) {
  sample.seconds = flops_of(sample) / (row.positive() * kTera);
  sample.spread = row.maybe_number();
  sample.regime = static_cast<Regime>(row.choice(kRegimes));
  sample.source = row.text();
}

Sample read_gemm(Row& row) {
  Sample sample{.gpu = std::string(row.text())};
  kernel::Gemm gemm{.precision = static_cast<kernel::Precision>(row.choice(kPrecisions))};
  gemm.m = row.count();
  gemm.n = row.count();
  gemm.k = row.count();
  sample.kernels = {gemm};
  read_measurement(row, sample);
  return sample;
}

Sample read_attention(Row& row) {
  Sample sample{.gpu = std::string(row.text())};
  kernel::Attention attention{.implementation = static_cast<AttentionKernel>(row.choice(kImplementations))};
  const std::size_t direction = row.choice(kDirections);
  const std::size_t mask = row.choice(kMasks);
  attention.sequences = row.count();
  attention.heads = row.count();
  attention.kv_heads = row.count();
  attention.head_dim = row.count();
  attention.queries = row.count();
  attention.keys = row.count();
  const std::int64_t all = attention.queries * attention.keys;
  attention.pairs = mask == 0 ? all : all - attention.queries * (attention.queries - 1) / 2;
  if (direction != kBackwardOnly) {
    attention.direction = Direction::forward;
    sample.kernels.emplace_back(attention);
  }
  if (direction == kBackwardOnly || direction == kBoth) {
    attention.direction = Direction::backward;
    sample.kernels.emplace_back(attention);
  }
  if (direction == kForwardWithKvWrite) {
    // K and V of every token, bf16, read and written.
    const std::int64_t elements = attention.sequences * attention.keys * attention.kv_heads * attention.head_dim;
    sample.kernels.emplace_back(kernel::MemoryBound{.traffic = Bytes(std::int64_t{2} * 2 * 2 * elements)});
  }
  read_measurement(row, sample);
  return sample;
}

template <class Read>
std::vector<Sample> parse_rows(std::string_view text, const std::string& file, std::string_view header, Read read) {
  Diagnostics diagnostics;
  std::vector<Sample> samples;
  const std::size_t columns = split(header, ',').size();
  int line_number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++line_number;
    if (!line.empty() && line.back() == '\r') {
      line.remove_suffix(1);
    }
    Location where{.file = file, .line = line_number, .column = 1};
    if (line_number == 1) {
      if (line != header) {
        diagnostics.error(where, fmt::format("the first line must be '{}'", header));
      }
      continue;
    }
    if (line.empty()) {
      continue;
    }
    Row row(line, where, diagnostics);
    if (row.cells() != columns) {
      diagnostics.error(where, fmt::format("{} cells instead of {}", row.cells(), columns));
      continue;
    }
    samples.push_back(read(row));
  }
  diagnostics.throw_if_any();
  return samples;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    throw InputError({{.where = {.file = path.string()}, .message = "cannot be read"}});
  }
  return text;
}

}  // namespace

std::vector<Sample> parse_gemm_samples(std::string_view text, const std::string& file) {
  return parse_rows(text, file, kGemmHeader, read_gemm);
}

std::vector<Sample> parse_attention_samples(std::string_view text, const std::string& file) {
  return parse_rows(text, file, kAttentionHeader, read_attention);
}

std::vector<Sample> load_samples(const std::filesystem::path& catalog_dir, const std::string& name) {
  const auto gemm = catalog_dir / "samples" / (name + "-gemm.csv");
  const auto attention = catalog_dir / "samples" / (name + "-attention.csv");
  std::vector<Sample> samples = parse_gemm_samples(read_text(gemm), gemm.string());
  for (Sample& sample : parse_attention_samples(read_text(attention), attention.string())) {
    samples.push_back(std::move(sample));
  }
  return samples;
}

double flops_of(const Sample& sample) {
  double flops = 0.0;
  for (const kernel::Kernel& kernel : sample.kernels) {
    flops += executed_flops(kernel).value();
  }
  return flops;
}

}  // namespace ulysim::calibration
