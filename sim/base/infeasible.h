#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ulysim {

/// Why a legitimate plan cannot run: a value in the result, never an exception.
struct Infeasible {
  std::string reason{};                                   ///< "28 heads do not divide by 8"
  std::vector<std::pair<std::string, double>> numbers{};  ///< {"heads", 28}, {"ulysses", 8}
  std::string suggestion{};                               ///< "ulysses 4 with data 2, or ring 8"
};

}  // namespace ulysim
