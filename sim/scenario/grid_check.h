#pragma once

#include <filesystem>

#include "sim/base/diagnostics.h"
#include "sim/scenario/grid.h"

namespace ulysim::scenario {

/// Reports what is wrong with every value of the axes, and with every plan, that can be read in none of its
/// combinations with the others (of many, an even spread is tried).
void check_combinations(const Grid& grid, const std::filesystem::path& data, Diagnostics& diagnostics);

}  // namespace ulysim::scenario
