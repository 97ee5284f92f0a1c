#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

namespace ulysim::calibration::cuda {

/// One row of what was measured.
struct MeasuredSample {
  std::string kind{};   ///< gemm, attention, copy, collective, sequence-attention
  std::string shape{};  ///< `key=value` with spaces between
  std::string where{};  ///< GPU and number of ranks: `NVIDIA H200 x8`
  double median_s{};
  double spread{};           ///< between the quartiles, relative to the median
  std::string provenance{};  ///< program, versions of driver and library
};

/// The first line of the file.
[[nodiscard]] std::string_view sample_header();

enum class Existing : std::uint8_t { refuse, resume };

/// A CSV to which every sample is written as soon as it is there: what a killed run measured is kept, and a resumed run
/// measures what is missing. A line that a kill tore is dropped.
class SampleFile {
 public:
  /// Throws InputError for a file that exists (refuse) or that is none of ours (resume), WorldError if it cannot be
  /// written.
  SampleFile(std::filesystem::path path, Existing existing);

  [[nodiscard]] bool has(const MeasuredSample& sample) const;
  /// On disk when it returns. Cells may hold no comma, quote or line break: InternalError.
  void append(const MeasuredSample& sample);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
  std::set<std::string> keys_;
};

}  // namespace ulysim::calibration::cuda
