#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ulysim::golden {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Compares `text` with the file tests/golden/NAME. With ULYSIM_UPDATE_GOLDENS=1 in the environment the file is written
/// anew instead: read the difference before it is committed.
inline void compare(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(ULYSIM_SOURCE_DIR) / "tests" / "golden" / name;
  const char* update = std::getenv("ULYSIM_UPDATE_GOLDENS");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << "no golden " << name << ": ULYSIM_UPDATE_GOLDENS=1 writes it";
  EXPECT_EQ(text, read_file(path)) << name << " differs: ULYSIM_UPDATE_GOLDENS=1 rewrites it";
}

}  // namespace ulysim::golden
