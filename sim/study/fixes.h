#pragma once

#include <span>

#include "sim/strategies/plan.h"

namespace ulysim::study {

/// One option that saves memory.
struct Fix {
  const char* text{};  ///< as a plan's keys: what the user would write
  bool (*applies)(const strategies::Plan&){};
  void (*turn_on)(strategies::Plan&){};
};

/// In the order in which one would try them: cheapest in time first.
[[nodiscard]] std::span<const Fix> fixes();

}  // namespace ulysim::study
