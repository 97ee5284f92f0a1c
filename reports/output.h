#pragma once

#include <filesystem>
#include <string_view>

namespace ulysim::reports {

/// Writes a file whole or not at all: a temporary name beside it, then a rename (what is no regular file, like
/// /dev/null or a pipe, is written in place). "-" is standard output.
/// Throws WorldError with a sentence (no space, no permission, no such folder). A reader that went away (EPIPE) is
/// no error.
void write_output(const std::filesystem::path& path, std::string_view text);

/// The same on standard output.
void write_stdout(std::string_view text);

}  // namespace ulysim::reports
