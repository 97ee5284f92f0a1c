#include "sim/config/document.h"

#include <algorithm>
#include <fstream>
#include <system_error>

namespace ulysim::config {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{64} << 20;

[[noreturn]] void refuse(const std::string& file, std::string message) {
  throw InputError({{.where = {.file = file}, .message = std::move(message)}});
}

std::string read_text(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  const std::string file = path.string();
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) {
    refuse(file, "no such file");
  }
  if (failure) {
    refuse(file, "cannot be read: " + failure.message());
  }
  if (status.type() == fs::file_type::directory) {
    refuse(file, "is a directory, not a file");
  }
  // Opening a FIFO waits for its writer, and a device may never end.
  if (status.type() != fs::file_type::regular) {
    refuse(file, "is not a regular file");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    refuse(file, "cannot be read");
  }
  std::string text;
  std::string block(std::size_t{1} << 16, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMostFileBytes) {
      refuse(file, "is larger than 64 MiB");
    }
  }
  if (stream.bad()) {
    refuse(file, "cannot be read to its end");
  }
  return text;
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

Node load_file(const std::filesystem::path& path) {
  return path.extension() == ".json" ? load_json_file(path) : parse_yaml(read_text(path), path.string());
}

Node load_json_file(const std::filesystem::path& path) {
  return parse_json(read_text(path), path.string());
}

}  // namespace ulysim::config
