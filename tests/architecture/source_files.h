#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ulysim::architecture {

/// Files below `folders` of the source tree, as paths from its root with '/', sorted; build products are no part of it.
[[nodiscard]] std::vector<std::string> files_below(std::span<const std::string_view> folders);

/// The bytes of one of them.
[[nodiscard]] std::string content_of(const std::string& path);

/// .h, .cpp or .cu
[[nodiscard]] bool is_source(std::string_view path);

/// Lines of `text` that name a folder of somebody's machine (a home, a temporary folder), as "file:line: sentence".
[[nodiscard]] std::vector<std::string> machine_paths(std::string_view path, std::string_view text);

/// Whether a header's first line that is no comment is #pragma once.
[[nodiscard]] bool starts_with_pragma_once(std::string_view text);

}  // namespace ulysim::architecture
