#include "tools/data_folder.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <system_error>

#include "sim/base/check.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "catalog", ignored) && fs::is_directory(folder / "scenarios", ignored);
}

}  // namespace

fs::path find_data_directory() {
  if (const char* given = std::getenv("ULYSIM_DATA"); given != nullptr && *given != '\0') {
    if (holds_data(given)) {
      return given;
    }
    throw WorldError(fmt::format("ULYSIM_DATA is '{}', which holds no 'catalog' and 'scenarios'", given));
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) {
    throw WorldError(fmt::format("cannot tell where the program lies ({}); set ULYSIM_DATA", error.message()));
  }
  const fs::path folder = program.parent_path();
  for (const fs::path& candidate : {folder / "share" / "ulysim", folder.parent_path() / "share" / "ulysim"}) {
    if (holds_data(candidate)) {
      return candidate;
    }
  }
  throw WorldError(
      fmt::format("found no share/ulysim with 'catalog' and 'scenarios' beside {} or above it; set "
                  "ULYSIM_DATA",
                  program.string()));
}

}  // namespace ulysim::tools
