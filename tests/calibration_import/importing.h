#pragma once

#include <string>
#include <vector>

#include "calibration/import/import.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {

/// Bus bandwidths in the order of the file, of one side.
inline std::vector<double> busbw(const ImportedFile& file, bool in_place) {
  std::vector<double> out;
  for (const Measurement& sample : file.samples) {
    if (std::get<CollectiveRun>(sample.what).in_place == in_place) {
      out.push_back(sample.bus_bandwidth_gb_s.value_or(-1.0));
    }
  }
  return out;
}

inline const CollectiveRun& run_of(const ImportedFile& file, std::size_t sample) {
  return std::get<CollectiveRun>(file.samples.at(sample).what);
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
