#pragma once

#include <string>
#include <vector>

#include "calibration/import/import.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {

/// Bus bandwidths in the order of the file, of one side.
inline std::vector<double> busbw(const ImportedFile& file, bool in_place) {
  std::vector<double> out;
  for (const Sample& sample : file.samples) {
    if (std::get<CollectiveProbe>(sample.probe).in_place == in_place) {
      out.push_back(rate_of(sample).value_or(-1.0));
    }
  }
  return out;
}

inline const CollectiveProbe& run_of(const ImportedFile& file, std::size_t sample) {
  return std::get<CollectiveProbe>(file.samples.at(sample).probe);
}

/// Why `text` was refused, a line a mistake; empty when it was not.
inline std::string refusal(std::string_view text, const ImportHints& hints = {}) {
  try {
    static_cast<void>(import_text(text, "f", hints));
  } catch (const InputError& error) {
    std::string all;
    for (const Diagnostic& found : error.diagnostics()) {
      all += to_string(found) + "\n";
    }
    return all;
  }
  return {};
}

}  // namespace ulysim::calibration
