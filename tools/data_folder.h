#pragma once

#include <filesystem>

namespace ulysim::tools {

/// The folder that holds `catalog` and `scenarios`: $ULYSIM_DATA, else share/ulysim beside the program, else
/// ../share/ulysim of it. WorldError with a sentence when there is none.
[[nodiscard]] std::filesystem::path find_data_directory();

}  // namespace ulysim::tools
