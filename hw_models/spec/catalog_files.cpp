#include "hw_models/spec/catalog_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "sim/base/named.h"

namespace ulysim::spec {
namespace {

constexpr std::size_t kLongestName = 100;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

[[noreturn]] void refuse(const Location& asked_at, std::string_view what, std::string message) {
  Location where = asked_at;
  if (where.file.empty()) {
    where.file = fmt::format("{} catalogue", what);
  }
  throw InputError({Diagnostic{.where = std::move(where), .message = std::move(message)}});
}

}  // namespace

bool is_catalog_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), is_name_character);
}

std::vector<std::string> catalog_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    const std::filesystem::path& path = file->path();
    std::error_code ignored;
    if (path.extension() == ".yaml" && is_catalog_name(path.stem().string()) && file->is_regular_file(ignored)) {
      names.push_back(path.stem().string());
    }
  }
  // Directory order differs between file systems.
  std::sort(names.begin(), names.end());
  return names;
}

config::Node load_catalog_file(const std::filesystem::path& folder, std::string_view name, std::string_view what,
                               const Location& asked_at) {
  if (!is_catalog_name(name)) {
    refuse(
        asked_at, what,
        fmt::format("'{}' is no name of a {}: letters, digits, '-', '_' and '.' only, not led by a '.'", name, what));
  }
  const std::vector<std::string> known = catalog_names(folder);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    refuse(asked_at, what, fmt::format("unknown {} '{}'{}", what, name, did_you_mean(name, known)));
  }
  return config::load_file(folder / fmt::format("{}.yaml", name));
}

}  // namespace ulysim::spec
