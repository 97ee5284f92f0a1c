#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ulysim::tools {

struct Malformed {
  std::string kind{};  ///< what was done to it
  std::string text{};
};

/// `count` scenarios, each broken in one way that no reading can excuse. The same seed gives the same list.
[[nodiscard]] std::vector<Malformed> malformed_scenarios(std::uint64_t seed, std::size_t count);

}  // namespace ulysim::tools
