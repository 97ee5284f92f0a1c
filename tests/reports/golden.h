#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace ulysim::testing_support {

/// Compares with tests/`file`; ULYSIM_UPDATE_GOLDENS=1 writes it instead.
inline void expect_golden(const std::string& file, const std::string& actual) {
  const std::string path = std::string(ULYSIM_SOURCE_DIR) + "/tests/" + file;
  if (std::getenv("ULYSIM_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(actual, expected.str()) << "differs from tests/" << file << " (ULYSIM_UPDATE_GOLDENS=1 rewrites it)";
}

}  // namespace ulysim::testing_support
