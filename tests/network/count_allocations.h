#pragma once

#include <cstddef>

namespace ulysim::network::testing {

/// How often this program has called operator new so far.
[[nodiscard]] std::size_t allocations();

}  // namespace ulysim::network::testing
