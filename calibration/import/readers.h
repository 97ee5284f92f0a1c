#pragma once

#include <string>
#include <string_view>

#include "calibration/import/import.h"

namespace ulysim::calibration {

// One per format, each in the .cpp of its name; import.cpp chooses. All throw InputError with lines.

/// Columns by name, separated by commas or by '|'.
[[nodiscard]] ImportedFile import_table(std::string_view text, const std::string& file, const ImportHints& hints);
/// PyTorch's Kineto traces and other Chrome traces with its metadata; an array of events or an object with them.
[[nodiscard]] ImportedFile import_trace(std::string_view text, const std::string& file, const ImportHints& hints);
/// `nvidia-smi topo -m`.
[[nodiscard]] ImportedFile import_topo_matrix(std::string_view text, const std::string& file);
/// NCCL_TOPO_DUMP_FILE, or a cloud's NCCL_TOPO_FILE.
[[nodiscard]] ImportedFile import_topo_xml(std::string_view text, const std::string& file);

/// nvswitch, nvlink-pairs, nvlink-mesh or pcie, from the number of links between each two GPUs (0: none). Absent when
/// they make none of these.
[[nodiscard]] std::optional<std::string> fabric_of(const std::vector<std::vector<std::int64_t>>& links);

}  // namespace ulysim::calibration
