#pragma once

#include <filesystem>
#include <string>

#include "sim/base/diagnostics.h"
#include "sim/scenario/scenario.h"

namespace ulysim::scenario {

/// The data folder of the build tree: test programs lie one folder below the programs.
inline std::filesystem::path data_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "share" / "ulysim";
}

inline Scenario parsed(const std::string& text, const LoadOptions& options = {}) {
  return parse_scenario({.text = text, .file = "s.yaml"}, data_folder(), options);
}

/// A study of one node around `training` and `plans`, each a YAML flow value.
inline std::string study(const std::string& training, const std::string& plans) {
  return "model: llama-3.1-8b\ncluster: {node: dgx-h100}\ntraining: " + training + "\nplans: " + plans + "\n";
}

/// What the loader complains about, a line each; empty when it does not.
inline std::string complaints(const std::string& text, const LoadOptions& options = {}) {
  try {
    (void)parsed(text, options);
    return {};
  } catch (const InputError& error) {
    std::string out;
    for (const Diagnostic& found : error.diagnostics()) {
      out += to_string(found) + "\n";
    }
    return out;
  }
}

}  // namespace ulysim::scenario
