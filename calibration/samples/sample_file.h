#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include "calibration/samples/sample.h"

namespace ulysim::calibration {

/// An existing samples file: refuse to touch it, or measure only what it lacks.
enum class Existing : std::uint8_t { refuse, resume };

/// A table to which every sample is written as soon as it is there: what a killed run measured is kept, and a resumed
/// run measures what is missing. A line that a kill tore is dropped.
class SampleFile {
 public:
  /// InputError for a file that exists (refuse) or that is no table of samples (resume); WorldError if it cannot be
  /// written.
  SampleFile(std::filesystem::path path, Existing existing);

  /// What was measured already; nullptr when nothing was.
  [[nodiscard]] const Sample* find(const Sample& same) const;
  /// On disk when it returns.
  void append(Sample sample);

 private:
  void flush();

  std::filesystem::path path_;
  std::ofstream out_;
  std::vector<Sample> samples_;
};

}  // namespace ulysim::calibration
