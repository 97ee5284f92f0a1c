#pragma once

#include <cstdint>
#include <string>

#include "sim/base/quantity.h"

namespace ulysim {

/// Text that `parse_quantity.h` reads back to the same value: the shortest exact form ("80GiB", "450GB/s",
/// "1.2us", "989TFLOP/s"); bytes fall back to a plain count of B, durations to ps.
[[nodiscard]] std::string exact(Bytes value);
[[nodiscard]] std::string exact(Bandwidth value);
[[nodiscard]] std::string exact(FlopRate value);
[[nodiscard]] std::string exact(Duration value);

/// Text for people, three or four significant digits: "78.4 GiB", "276 s", "1.20 us", "1,048,576".
[[nodiscard]] std::string human(Bytes value);
[[nodiscard]] std::string human(Duration value);
[[nodiscard]] std::string human_count(std::int64_t value);

}  // namespace ulysim
