#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/document.h"

namespace ulysim::cases {

/// One set-up that a case speaks of: a scenario's fragment and its only plan.
struct Run {
  config::Node fragment{};
  config::Node plan{};
};

/// What is said of a run. All that is there must hold.
struct Expectation {
  std::string run{};
  std::string figure{};                ///< as figure_of() in cases_test.cpp knows them; with `between`
  std::optional<std::string> over{};   ///< the figure divided by that of another run
  std::optional<std::string> minus{};  ///< less that of another run
  std::optional<std::pair<double, double>> between{};
  std::vector<std::string> fit{};        ///< of "yes", "risky", "no": one of them
  std::optional<std::string> limit{};    ///< what stops the longest sequence
  std::optional<std::string> cannot{};   ///< part of the reason why the plan cannot run
  std::optional<std::string> refused{};  ///< part of the message with which the scenario is refused
  std::optional<std::vector<std::int64_t>> ulysses_degrees{};
  std::optional<std::string> misses{};  ///< known not to hold, and by how much
};

/// A question that users asked in public, and what a right answer is.
struct Case {
  std::string id{};
  std::string source{};
  std::string says{};
  std::map<std::string, Run> runs{};
  std::vector<Expectation> expect{};
};
std::ostream& operator<<(std::ostream& out, const Case& one);

/// Throws InputError with everything that is wrong in the file.
[[nodiscard]] std::vector<Case> read_cases(const std::filesystem::path& path);

}  // namespace ulysim::cases
