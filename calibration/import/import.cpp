#include "calibration/import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "calibration/import/nccl_tests.h"
#include "calibration/import/readers.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{4} << 30;

[[noreturn]] void refuse(const std::string& file, std::string message) {
  throw InputError({{.where = {.file = file, .line = 1, .column = 1}, .message = std::move(message)}});
}

/// '[' begins an array of events, but also "[1,0]<stdout>:" and "[0] #".
bool is_json(std::string_view start) {
  if (start.starts_with('{')) {
    return true;
  }
  if (!start.starts_with('[')) {
    return false;
  }
  const std::size_t next = start.find_first_not_of(" \t\r\n", 1);
  return next != std::string_view::npos && start[next] == '{';
}

bool is_topo_matrix(std::string_view text) {
  for (const Line& line : lines_of(text.substr(0, 20'000))) {
    const auto cells = cells_of(line.text, '\t');
    if (cells.size() > 1 && cells[0].empty() && cells[1] == "GPU0") {
      return true;
    }
  }
  return false;
}

bool is_table(std::string_view text) {
  for (const Line& line : lines_of(text.substr(0, 20'000))) {
    const std::string_view content = trimmed(line.text);
    if (content.empty()) {
      continue;
    }
    if (content.starts_with('#')) {
      return false;
    }
    return content.starts_with('|') ||
           (content.find(',') != std::string_view::npos && content.find_first_of("[<#") == std::string_view::npos);
  }
  return false;
}

ImportedFile read_any(std::string_view text, const std::string& file, const ImportHints& hints) {
  if (text.starts_with("\x1f\x8b")) {
    refuse(file, "compressed with gzip; unpack it first");
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);
  }
  const std::string_view start = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (start.empty()) {
    refuse(file, "the file is empty");
  }
  if (is_json(start)) {
    const bool nccl = text.find("\"traceEvents\"") == std::string_view::npos && start.front() == '{' &&
                      text.find("\"results\"") != std::string_view::npos;
    return nccl ? import_nccl_json(text, file, hints) : import_trace(text, file, hints);
  }
  if (start.starts_with('<')) {
    return import_topo_xml(text, file);
  }
  if (is_topo_matrix(text)) {
    return import_topo_matrix(text, file);
  }
  return is_table(text) ? import_table(text, file, hints) : import_nccl_text(text, file, hints);
}

/// Wide enough for anything that was ever measured; arithmetic on it stays finite.
bool is_sane(const Sample& sample) {
  constexpr double kLeast = 1e-12;
  constexpr double kMost = 1e12;
  const auto good = [&](const std::optional<double>& value) {
    return !value || *value == 0.0 || (*value >= kLeast && *value <= kMost);
  };
  return sample.seconds >= kLeast && sample.seconds <= kMost && good(rate_of(sample)) && good(sample.spread) &&
         good(sample.clock_mhz) && good(sample.power_w);
}

std::string read_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw InputError({{.where = {.file = path}, .message = "there is no such file"}});
  }
  if (!fs::is_regular_file(status)) {
    throw InputError({{.where = {.file = path}, .message = "this is no file"}});
  }
  if (fs::file_size(path, error) > kMostBytes) {
    throw InputError({{.where = {.file = path}, .message = "over 4 GiB"}});
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream) {
    throw InputError({{.where = {.file = path}, .message = "cannot be read"}});
  }
  return text;
}

}  // namespace

ImportedFile import_text(std::string_view text, const std::string& file, const ImportHints& hints) {
  ImportedFile out = read_any(text, file, hints);
  out.name = fs::path(file).filename().string();
  if (!std::all_of(out.samples.begin(), out.samples.end(), is_sane)) {
    refuse(file, "a time or a rate in it is beyond all bounds");
  }
  return out;
}

std::vector<ImportedFile> import_files(std::span<const std::string> paths, const ImportHints& hints) {
  std::vector<ImportedFile> files;
  std::vector<Diagnostic> mistakes;
  for (const std::string& path : paths) {
    try {
      files.push_back(import_text(read_file(path), path, hints));
    } catch (const InputError& error) {
      mistakes.insert(mistakes.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!mistakes.empty()) {
    throw InputError(std::move(mistakes));
  }
  return files;
}

}  // namespace ulysim::calibration
