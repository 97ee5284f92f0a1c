#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/import/import.h"
#include "calibration/samples/collective.h"
#include "calibration/samples/rank_estimate.h"
#include "calibration/samples/text.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {

/// One side of a row of nccl-tests, in its units.
struct Half {
  Printed time_us{};
  Printed algbw{};
  Printed busbw{};
  std::optional<double> wrong{};   ///< elements ("#wrong") or a relative error ("error"); absent for N/A
  std::optional<double> cv_pct{};  ///< with -I
};

struct NcclRow {
  int line{};
  std::int64_t size{};
  std::int64_t count{};
  std::int64_t element_bytes{};
  std::string redop{};  ///< empty where the generation prints none
  std::optional<std::int64_t> root{};
  std::optional<Half> out_of_place{};
  std::optional<Half> in_place{};
};

/// Whether the last column of a half counts wrong elements or gives the largest relative error (before 2022).
enum class Check : std::uint8_t { wrong_elements, relative_error };

/// One run of one program of nccl-tests.
struct NcclTable {
  int line{};                               ///< where it starts
  std::string program{};                    ///< "alltoall_perf", when the file names it
  std::vector<std::int64_t> rank_groups{};  ///< the group of each rank listed
  std::string gpu{};
  Check check{Check::wrong_elements};
  std::vector<NcclRow> rows{};
};

/// Finds out what collective over how many ranks it was, checks every row against that, and adds the samples. What
/// must not be used goes to `diagnostics`.
void add_samples(const NcclTable& table, const ImportHints& hints, const std::string& file, ImportedFile& out,
                 Diagnostics& diagnostics);

/// What `calibrate import` reads. Text of every generation of nccl-tests, perhaps prefixed by a launcher.
[[nodiscard]] ImportedFile import_nccl_text(std::string_view text, const std::string& file, const ImportHints& hints);
/// The file of `-J`.
[[nodiscard]] ImportedFile import_nccl_json(std::string_view text, const std::string& file, const ImportHints& hints);

}  // namespace ulysim::calibration
