#include "tools/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "reports/sweep_json.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"
#include "sim/config/mapping.h"
#include "sim/config/write_json.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;
using config::Json;

constexpr const char* kFormat = "ulysim-journal";
constexpr int kVersion = 1;

std::string head_line(const JournalHead& head) {
  return config::write_json(Json::object({{"format", kFormat},
                                          {"version", kVersion},
                                          {"sweep", head.sweep},
                                          {"identity", head.identity},
                                          {"points", head.points}}),
                            config::JsonLayout::compact);
}

[[noreturn]] void refuse(const fs::path& path, int line, std::string message) {
  throw InputError({{.where = {.file = path.string(), .line = line, .column = 1}, .message = std::move(message)}});
}

void check_head(const fs::path& path, const std::string& line, const JournalHead& head) {
  if (line == head_line(head)) {
    return;
  }
  const config::Node* format = nullptr;
  std::string other;
  try {
    const config::Node root = config::parse_json(line, path.string());
    format = root.find("format");
    if (const config::Node* sweep = root.find("sweep"); format != nullptr && format->text == kFormat && sweep) {
      other = sweep->text;
    }
  } catch (const InputError&) {
    // Told below.
  }
  if (other.empty()) {
    refuse(path, 1, "this is no journal of a sweep");
  }
  refuse(path, 1,
         other == head.sweep
             ? fmt::format("this is the journal of a sweep '{}' with another grid or of another version of the "
                           "program: choose another folder, or remove it",
                           other)
             : fmt::format("this is the journal of the sweep '{}', not of '{}'", other, head.sweep));
}

}  // namespace

void read_journal(const fs::path& path, const JournalHead& head, const results::SweepResult& sweep,
                  FinishedPoints& finished) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  for (int number = 1; std::getline(in, line) && !in.eof();
       ++number) {  // at the end of the file the newline is missing
    if (number == 1) {
      check_head(path, line, head);
      continue;
    }
    Diagnostics diagnostics;
    try {
      const config::Node node = config::parse_json(line, path.string());
      results::SweepPoint point = reports::read_point({node, "", diagnostics}, sweep);
      diagnostics.throw_if_any();
      finished.try_emplace(results::number_of(sweep.axes, point.at), std::move(point));
    } catch (const InputError& error) {
      refuse(path, number, fmt::format("this line is no point: {}", error.diagnostics().front().message));
    }
  }
}

Journal::Journal(fs::path path, const JournalHead& head) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) {
    fail(errno);
  }
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(file_);
    if (error == EWOULDBLOCK) {
      throw WorldError(fmt::format("another process is writing {}", path_.string()));
    }
    fail(error);
  }
  std::ifstream in(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (::ftruncate(file_, static_cast<off_t>(whole)) != 0) {
    fail(errno);
  }
  if (whole == 0) {
    write_line(head_line(head));
  }
}

Journal::~Journal() {
  ::close(file_);
}

void Journal::add(const results::SweepPoint& point) {
  write_line(reports::point_json(point));
}

void Journal::write_line(std::string line) {
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      fail(errno);
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Journal::fail(int error) const {
  throw WorldError(fmt::format("cannot write {}: {}", path_.string(), std::strerror(error)));
}

}  // namespace ulysim::tools
