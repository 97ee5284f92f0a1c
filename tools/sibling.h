#pragma once

#include <string>
#include <vector>

namespace ulysim::tools {

/// Runs a program that lies beside this one and returns its exit status. WorldError when it is not there or was killed.
[[nodiscard]] int run_sibling(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace ulysim::tools
