// Rows to samples, whatever their kind: a row says which it is, or its columns do.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "calibration/samples/rank_estimate.h"
#include "calibration/samples/table.h"
#include "calibration/samples/table_row.h"

namespace ulysim::calibration {
namespace {

constexpr double kLeastSeconds = 1e-12;
constexpr double kMostSeconds = 1e12;

void read_common(Row& row, Sample& sample) {
  const auto number = [&](const char* column) {
    const auto printed = row.number(column);
    return printed ? std::optional(printed->value) : std::nullopt;
  };
  sample.spread = number("spread");
  sample.clock_mhz = number("clock_mhz");
  sample.power_w = number("power_w");
  sample.runs = row.count_or("runs", 1).value_or(1);
  sample.regime = row.maybe<Regime>("regime");
  sample.gpu = row.text("gpu");
  sample.fabric = row.text("fabric");
  sample.software = row.text("software");
  sample.source = row.text("source");
}

/// A printed time, else work / the first rate that is printed; nothing, and a mistake, without either.
struct PrintedRate {
  std::optional<Printed> rate{};
  double work_per_unit{};  ///< the work of a second at a rate of 1
};
std::optional<double> seconds_of(Row& row, std::initializer_list<PrintedRate> rates, const char* rate_name) {
  std::optional<double> seconds;
  if (const auto printed = row.number("time_s")) {
    seconds = printed->value;
  } else if (const auto micro = row.number("time_us")) {
    seconds = micro->value / 1e6;
  }
  for (const PrintedRate& one : rates) {
    if (!seconds && one.rate && one.rate->value > 0.0) {
      seconds = one.work_per_unit / one.rate->value;
    }
  }
  if (!seconds || *seconds < kLeastSeconds || *seconds > kMostSeconds) {
    row.error(fmt::format("a time of 1 ps to 1e12 s, or a {}, is needed", rate_name));
    return std::nullopt;
  }
  return seconds;
}

class Reader {
 public:
  Reader(const ImportHints& hints, std::optional<Ratio> ratio, SampleTable& out)
      : hints_(&hints), ratio_(ratio), out_(&out) {}

  void read(Row& row) {
    const std::string kind = row.text("kind");
    if (kind == "gemm" || (kind.empty() && row.has("m"))) {
      add(row, gemm(row));
    } else if (kind == "attention" || (kind.empty() && row.has("head_dim"))) {
      add(row, attention(row));
    } else if (kind == "copy") {
      add(row, copy(row));
    } else if (kind == "layer") {
      add(row, layer(row));
    } else if (kind.empty() || kind == "collective") {
      collective(row);
    } else {
      row.error(fmt::format("unknown kind '{}'; known: {}", shown(kind), fmt::join(probe_kinds(), ", ")));
    }
  }

 private:
  /// Of kinds that run on every rank alike.
  void add(Row& row, const std::optional<Probe>& probe) {
    if (!probe) {
      return;
    }
    if (!is_measurable(*probe)) {
      row.error("its sizes are beyond all bounds, or a causal mask leaves queries without keys");
      return;
    }
    constexpr double kTera = 1e12;
    const auto tflops = row.number("tflops");
    const auto seconds = seconds_of(row, {{.rate = tflops, .work_per_unit = flops_of(*probe) / kTera}}, "rate");
    const auto ranks = row.count_or("ranks", 1);
    if (!seconds || !ranks) {
      return;
    }
    Sample sample{.probe = *probe, .ranks = *ranks, .seconds = *seconds};
    if (tflops && flops_of(*probe) > 0.0) {
      sample.printed_rate = tflops->value;
    }
    read_common(row, sample);
    out_->samples.push_back(std::move(sample));
  }

  static std::optional<Probe> gemm(Row& row) {
    const auto precision = row.maybe<kernel::Precision>("precision");
    const auto m = row.count("m");
    const auto n = row.count("n");
    const auto k = row.count("k");
    const auto batch = row.count_or("batch", 1);
    if (!m || !n || !k || !batch || (row.has("precision") && !precision)) {
      return std::nullopt;
    }
    return GemmProbe{.m = *m, .n = *n, .k = *k, .batch = *batch, .precision = precision};
  }

  static std::optional<Probe> attention(Row& row) {
    const auto implementation = row.choice<kernel::AttentionKernel>("implementation");
    const auto pass = row.choice<Pass>("direction");
    const auto mask = row.choice<Mask>("mask");
    const auto sequences = row.count_or("sequences", 1);
    const auto heads = row.count("heads");
    const auto kv_heads = row.count("kv_heads");
    const auto head_dim = row.count("head_dim");
    const auto queries = row.count("queries");
    const auto keys = row.count("keys");
    if (!implementation || !pass || !mask || !sequences || !heads || !kv_heads || !head_dim || !queries || !keys) {
      return std::nullopt;
    }
    return AttentionProbe{.implementation = *implementation,
                          .pass = *pass,
                          .mask = *mask,
                          .sequences = *sequences,
                          .heads = *heads,
                          .kv_heads = *kv_heads,
                          .head_dim = *head_dim,
                          .queries = *queries,
                          .keys = *keys};
  }

  static std::optional<Probe> copy(Row& row) {
    const auto path = row.choice<CopyPath>("path");
    const auto bytes = row.count("bytes");
    return path && bytes ? std::optional<Probe>(CopyProbe{.path = *path, .bytes = *bytes}) : std::nullopt;
  }

  static std::optional<Probe> layer(Row& row) {
    const auto scheme = row.choice<Scheme>("scheme");
    const auto pass = row.choice<Pass>("direction");
    const auto mask = row.choice<Mask>("mask");
    const auto tokens = row.count("queries");
    const auto heads = row.count("heads");
    const auto kv_heads = row.count("kv_heads");
    const auto head_dim = row.count("head_dim");
    if (!scheme || !pass || !mask || !tokens || !heads || !kv_heads || !head_dim) {
      return std::nullopt;
    }
    return LayerProbe{.scheme = *scheme,
                      .pass = *pass,
                      .mask = *mask,
                      .tokens = *tokens,
                      .heads = *heads,
                      .kv_heads = *kv_heads,
                      .head_dim = *head_dim};
  }

  const CollectiveInfo* collective_of(Row& row) {
    const std::string named = row.has("collective") ? row.text("collective") : hints_->collective.value_or("");
    if (!named.empty()) {
      const CollectiveInfo* found = find_collective(named);
      if (found == nullptr) {
        row.error(fmt::format("no collective '{}'; known: {}", shown(named), known_collectives()));
      }
      out_->collective_from = row.has("collective") ? "its column" : "--collective";
      return found;
    }
    if (ratio_ && ratio_->low > 1.0) {
      out_->collective_from = "busbw above algbw";
      return find_collective("all_reduce");
    }
    row.error("which collective it is does not show; add a column 'collective', or say --collective NAME");
    return nullptr;
  }

  std::optional<std::int64_t> ranks_of(Row& row, const CollectiveInfo& collective) {
    if (row.has("ranks")) {
      out_->ranks_from = "its column";
      return row.count("ranks");
    }
    if (hints_->ranks) {
      out_->ranks_from = "--ranks";
      return hints_->ranks;
    }
    const auto estimate = ratio_ && collective.factor == BusFactor::twice_share ? ranks_from(*ratio_) : std::nullopt;
    if (!estimate) {
      row.error("how many ranks took part does not show; add a column 'ranks', or say --ranks N");
      return std::nullopt;
    }
    out_->ranks_from = "busbw over algbw";
    return estimate->ranks;
  }

  void collective(Row& row) {
    const CollectiveInfo* collective = collective_of(row);
    if (collective == nullptr) {
      return;
    }
    const auto ranks = ranks_of(row, *collective);
    const auto bytes = row.count("bytes");
    if (!ranks || !bytes) {
      return;
    }
    if (*ranks < 2) {
      row.error("one rank alone communicates with nobody");
      return;
    }
    const auto busbw = row.number("bus_bandwidth_gb_s");
    const double per_gb_s = static_cast<double>(*bytes) / 1e9;
    const auto seconds = seconds_of(row,
                                    {{.rate = row.number("algbw_gb_s"), .work_per_unit = per_gb_s},
                                     {.rate = busbw, .work_per_unit = per_gb_s * bus_factor(*collective, *ranks)}},
                                    "bandwidth");
    if (!seconds) {
      return;
    }
    const std::string in_place = row.text("in_place");
    if (!in_place.empty() && in_place != "true" && in_place != "false") {
      row.error("'in_place' is true or false");
    }
    Sample sample{.probe = CollectiveProbe{.collective = collective->id,
                                           .bytes = *bytes,
                                           .in_place = in_place == "true",
                                           .via = row.maybe<Via>("via").value_or(Via::library)},
                  .ranks = *ranks,
                  .seconds = *seconds};
    if (busbw) {
      sample.printed_rate = busbw->value;
    }
    read_common(row, sample);
    out_->collective = out_->collective.empty() || out_->collective == collective->name ? collective->name : "several";
    out_->ranks = ranks;
    out_->samples.push_back(std::move(sample));
  }

  const ImportHints* hints_;
  std::optional<Ratio> ratio_;
  SampleTable* out_;
};

/// Over all rows: of one table is one collective over as many ranks.
std::optional<Ratio> common_ratio(const std::vector<NamedRow>& rows) {
  Ratio ratio{.low = 0.0, .high = 1e300};
  bool any = false;
  Diagnostics ignored;  // told when the row is read
  for (const NamedRow& named : rows) {
    Row row(named, ignored);
    const auto busbw = row.number("bus_bandwidth_gb_s");
    const auto algbw = row.number("algbw_gb_s");
    if (busbw && algbw && algbw->value > 0.0) {
      const Ratio one = ratio_of(*busbw, *algbw);
      ratio = {.low = std::max(ratio.low, one.low), .high = std::min(ratio.high, one.high)};
      any = true;
    }
  }
  return any ? std::optional(ratio) : std::nullopt;
}

}  // namespace

SampleTable parse_samples(std::string_view text, const std::string& file, const ImportHints& hints) {
  Diagnostics diagnostics;
  const std::vector<NamedRow> rows = named_rows(text, file, diagnostics);
  SampleTable out;
  Reader reader(hints, common_ratio(rows), out);
  for (const NamedRow& named : rows) {
    Row row(named, diagnostics);
    reader.read(row);
  }
  if (rows.empty()) {
    diagnostics.error({.file = file, .line = 1, .column = 1}, "a table without rows");
  }
  diagnostics.throw_if_any();
  return out;
}

std::vector<Sample> load_samples(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    throw InputError({{.where = {.file = path.string()}, .message = "cannot be read"}});
  }
  return parse_samples(text, path.string()).samples;
}

}  // namespace ulysim::calibration
