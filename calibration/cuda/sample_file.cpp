#include "calibration/cuda/sample_file.h"

#include <fmt/format.h>

#include <iterator>
#include <system_error>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr std::string_view kHeader = "kind,shape,where,median_s,spread,provenance";

[[noreturn]] void refuse(const std::filesystem::path& path, std::string message) {
  throw InputError({{.where = {.file = path.string()}, .message = std::move(message)}});
}

std::string key_of(const MeasuredSample& sample) {
  return fmt::format("{},{},{}", sample.kind, sample.shape, sample.where);
}

// The first three cells.
std::string key_of(std::string_view line) {
  std::size_t end = 0;
  for (int cell = 0; cell < 3 && end != std::string_view::npos; ++cell) {
    end = line.find(',', end == 0 ? 0 : end + 1);
  }
  return std::string(line.substr(0, end));
}

}  // namespace

std::string_view sample_header() {
  return kHeader;
}

SampleFile::SampleFile(std::filesystem::path path, Existing existing) : path_(std::move(path)) {
  std::string text;
  if (std::filesystem::exists(path_)) {
    if (existing == Existing::refuse) {
      refuse(path_, "exists; --resume continues it");
    }
    std::ifstream in(path_, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
    const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    if (whole != 0 && !text.starts_with(fmt::format("{}\n", kHeader))) {
      refuse(path_, fmt::format("cannot be continued: its first line is not '{}'", kHeader));
    }
    if (whole != text.size()) {
      text.resize(whole);
      std::error_code error;
      std::filesystem::resize_file(path_, whole, error);
      if (error) {
        throw WorldError(fmt::format("cannot shorten {}: {}", path_.string(), error.message()));
      }
    }
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
      keys_.insert(key_of(rest.substr(0, rest.find('\n'))));
    }
  }
  file_.open(path_, std::ios::binary | std::ios::app);
  if (text.empty()) {
    file_ << kHeader << '\n' << std::flush;
  }
  if (!file_) {
    throw WorldError(fmt::format("cannot write {}", path_.string()));
  }
}

bool SampleFile::has(const MeasuredSample& sample) const {
  return keys_.contains(key_of(sample));
}

void SampleFile::append(const MeasuredSample& sample) {
  for (const std::string* const cell : {&sample.kind, &sample.shape, &sample.where, &sample.provenance}) {
    ULYSIM_CHECK(cell->find_first_of(",\"\r\n") == std::string::npos, "'{}' does not fit into a cell", *cell);
  }
  file_ << fmt::format("{},{:.6e},{:.4f},{}\n", key_of(sample), sample.median_s, sample.spread, sample.provenance)
        << std::flush;
  if (!file_) {
    throw WorldError(fmt::format("cannot write {}", path_.string()));
  }
  keys_.insert(key_of(sample));
}

}  // namespace ulysim::calibration::cuda
