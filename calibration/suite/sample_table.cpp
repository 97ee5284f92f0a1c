#include "calibration/suite/sample_table.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iterator>

#include "calibration/suite/probe_text.h"
#include "sim/base/diagnostics.h"
#include "sim/base/parse_quantity.h"

namespace ulysim::calibration {
namespace {

constexpr std::string_view kHeader = "kind,shape,ranks,fabric,seconds,spread,repetitions,source";
constexpr std::size_t kColumns = 8;

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) {
      return cells;
    }
    line.remove_prefix(comma + 1);
  }
}

/// One row, or a sentence into the diagnostics.
class RowReader {
 public:
  RowReader(Location where, Diagnostics& diagnostics) : where_(std::move(where)), diagnostics_(&diagnostics) {}

  void read(std::string_view line, std::vector<ProbeSample>& samples) {
    const std::vector<std::string_view> cells = cells_of(line);
    if (cells.size() != kColumns) {
      return error(fmt::format("{} cells instead of {}", cells.size(), kColumns));
    }
    const std::optional<Probe> probe = probe_of(cells[0], cells[1]);
    if (!probe) {
      return error(fmt::format("cannot read '{}' of a '{}'", cells[1], cells[0]));
    }
    ProbeSample sample{.probe = *probe, .fabric = std::string(cells[3]), .source = std::string(cells[7])};
    sample.ranks = static_cast<int>(number(parse_count(cells[2])));
    sample.seconds = number(parse_number(cells[4]));
    sample.spread = number(parse_number(cells[5]));
    sample.repetitions = static_cast<int>(number(parse_count(cells[6])));
    if (good_ && (sample.ranks < 1 || sample.seconds <= 0.0)) {
      return error("ranks and seconds must be above 0");
    }
    if (good_) {
      samples.push_back(std::move(sample));
    }
  }

 private:
  template <class T>
  T number(const Parsed<T>& parsed) {
    if (const auto* value = std::get_if<T>(&parsed)) {
      return *value;
    }
    error(std::get<std::string>(parsed));
    return T{};
  }
  void error(std::string message) {
    good_ = false;
    diagnostics_->error(where_, std::move(message));
  }

  Location where_;
  Diagnostics* diagnostics_;
  bool good_{true};
};

}  // namespace

std::string_view sample_header() {
  return kHeader;
}

std::string sample_row(const ProbeSample& sample) {
  return fmt::format("{},{},{},{},{:.9g},{:.4f},{},{}\n", kind_of(sample.probe), shape_of(sample.probe), sample.ranks,
                     sample.fabric, sample.seconds, sample.spread, sample.repetitions, sample.source);
}

std::vector<ProbeSample> parse_probe_samples(std::string_view text, const std::string& file) {
  Diagnostics diagnostics;
  std::vector<ProbeSample> samples;
  int number = 0;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const Location where{.file = file, .line = ++number, .column = 1};
    if (number > 1) {
      RowReader(where, diagnostics).read(line, samples);
    } else if (line != kHeader) {
      diagnostics.error(where, fmt::format("the first line must be '{}'", kHeader));
    }
  }
  if (number == 0 && !text.empty()) {
    diagnostics.error({.file = file, .line = 1, .column = 1}, fmt::format("the first line must be '{}'", kHeader));
  }
  diagnostics.throw_if_any();
  return samples;
}

std::vector<ProbeSample> load_probe_samples(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    throw InputError({{.where = {.file = path.string()}, .message = "cannot be read"}});
  }
  return parse_probe_samples(text, path.string());
}

std::string key_of(const Probe& probe, int ranks, std::string_view fabric) {
  return fmt::format("{},{},{},{}", kind_of(probe), shape_of(probe), ranks, fabric);
}

}  // namespace ulysim::calibration
