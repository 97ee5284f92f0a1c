#include "tests/architecture/source_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ulysim::architecture {
namespace {

namespace fs = std::filesystem;

// Split in two, so that this file itself is clean.
constexpr std::array<std::string_view, 5> kMachineFolders{
    "/"
    "home",
    "/"
    "root",
    "/"
    "tmp",
    "/"
    "work",
    "/"
    "Users"};

bool continues_a_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

// "/x" starts a path only at the start of a line or after something that cannot be a part of a path or of a link.
bool starts_a_path(std::string_view line, std::size_t at) {
  constexpr std::string_view kBefore = " \t\"'`(=:,;[{|>";
  return at == 0 || kBefore.find(line[at - 1]) != std::string_view::npos;
}

bool names_a_machine_folder(std::string_view line) {
  return std::any_of(kMachineFolders.begin(), kMachineFolders.end(), [&](std::string_view folder) {
    for (std::size_t at = line.find(folder); at != std::string_view::npos; at = line.find(folder, at + 1)) {
      const std::size_t end = at + folder.size();
      if (starts_a_path(line, at) && (end == line.size() || !continues_a_word(line[end]))) {
        return true;
      }
    }
    return false;
  });
}

}  // namespace

std::vector<std::string> files_below(std::span<const std::string_view> folders) {
  const fs::path root = ULYSIM_SOURCE_DIR;
  std::vector<std::string> files;
  for (const std::string_view folder : folders) {
    if (!fs::exists(root / folder)) {
      continue;
    }
    for (auto entry = fs::recursive_directory_iterator(root / folder); entry != fs::end(entry); ++entry) {
      const std::string name = entry->path().filename().string();
      if (name == "node_modules" || name == "__pycache__") {
        entry.disable_recursion_pending();
      } else if (entry->is_regular_file() && !name.ends_with(".swp") && !name.ends_with('~')) {
        files.push_back(entry->path().lexically_relative(root).generic_string());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string content_of(const std::string& path) {
  std::ifstream in(fs::path(ULYSIM_SOURCE_DIR) / path, std::ios::binary);
  if (!in) {
    throw std::runtime_error("cannot read " + path);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_source(std::string_view path) {
  return path.ends_with(".h") || path.ends_with(".cpp") || path.ends_with(".cu");
}

std::vector<std::string> machine_paths(std::string_view path, std::string_view text) {
  std::vector<std::string> found;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (names_a_machine_folder(text.substr(0, end))) {
      found.push_back(fmt::format("{}:{}: names a folder of one machine", path, line));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

bool starts_with_pragma_once(std::string_view text) {
  while (text.starts_with("//") || text.starts_with('\n')) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return text.starts_with("#pragma once\n");
}

}  // namespace ulysim::architecture
