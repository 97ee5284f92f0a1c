#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/strategies/strategy.h"

/// A strategy can be taken out of the catalogue. Then its own tests fail (its file under tests/strategies, its golden
/// graph), and all others that need it are skipped: CTest takes these words for that (tools/cmake/UlysimModule.cmake).
namespace ulysim::tests {

inline bool is_its_own_test(std::string_view pass) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string own = std::string(pass) + "_test";
  std::replace(own.begin(), own.end(), '-', '_');
  return std::filesystem::path(test->file()).stem() == own;
}

/// Ends the running test where the catalogue lacks the pass: it fails if it is the pass's own, else it is skipped. Does
/// nothing while tests are being listed.
inline void need_pass(std::string_view pass) {
  const bool running = testing::UnitTest::GetInstance()->current_test_info() != nullptr;
  if (running && strategies::find_strategy(pass) == nullptr) {
    const char* words = is_its_own_test(pass) ? "the catalogue has lost the pass '" : "this build has no pass '";
    throw std::runtime_error(words + std::string(pass) + "'");
  }
}

/// The same for all that the plans of a scenario ask for.
template <class Plans>
void need_passes_of(const Plans& plans) {
  for (const auto& entry : plans) {
    for (const std::string& pass : strategies::passes_of(entry.plan)) {
      need_pass(pass);
    }
  }
}

}  // namespace ulysim::tests
