#include "calibration/samples/sample_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "calibration/samples/table.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void shorten(const fs::path& path, std::size_t bytes) {
  std::error_code error;
  fs::resize_file(path, bytes, error);
  if (error) {
    throw WorldError(fmt::format("cannot shorten {}: {}", path.string(), error.message()));
  }
}

}  // namespace

SampleFile::SampleFile(fs::path path, Existing existing) : path_(std::move(path)) {
  std::size_t whole = 0;
  if (fs::exists(path_)) {
    if (existing == Existing::refuse) {
      throw InputError({{.where = {.file = path_.string()}, .message = "exists; pass --resume to go on with it"}});
    }
    const std::string text = text_of(path_);
    whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    const std::string header = sample_header();
    if (whole > 0 && !text.starts_with(header)) {
      throw InputError({{.where = {.file = path_.string(), .line = 1, .column = 1},
                         .message = "is no samples file of a run: its first line is another"}});
    }
    if (whole > header.size()) {
      samples_ = parse_samples(text.substr(0, whole), path_.string()).samples;
    }
    if (whole < text.size()) {
      shorten(path_, whole);
    }
  }
  out_.open(path_, std::ios::binary | std::ios::app);
  if (whole == 0) {
    out_ << sample_header();
  }
  flush();
}

const Sample* SampleFile::find(const Sample& same) const {
  const auto found = std::find_if(samples_.begin(), samples_.end(),
                                  [&](const Sample& sample) { return is_same_measurement(sample, same); });
  return found == samples_.end() ? nullptr : &*found;
}

void SampleFile::append(Sample sample) {
  out_ << sample_row(sample);
  flush();
  samples_.push_back(std::move(sample));
}

void SampleFile::flush() {
  out_.flush();
  if (!out_) {
    throw WorldError(fmt::format("cannot write {}", path_.string()));
  }
}

}  // namespace ulysim::calibration
