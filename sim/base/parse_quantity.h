#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "sim/base/quantity.h"

namespace ulysim {

/// The one grammar of units, for YAML and the command line.
///
///   quantity  := number [space] unit         number := digits with optional '_' between digits, '.', exponent
///   bytes     := [k M G T P | Ki Mi Gi Ti Pi] B            "80GiB", "512 MB"
///   bandwidth := bytes "/s" | [prefix] b "/s"              "400Gb/s" (bits), "450GB/s" (bytes)
///   flop rate := [k M G T P] FLOP/s                        "989TFLOP/s"
///   flops     := [k M G T P E] FLOP
///   duration  := ps | ns | us | ms | s | min | h           "1.2us"
///   count     := digits with optional '_', then an optional k M G T | Ki Mi Gi Ti   "1048576", "1_048_576", "1M",
///   "1Mi"
///
/// Decimal prefixes are powers of 1000, binary ones of 1024; `b` is bits, `B` bytes. A bare number where a
/// unit is needed is an error (also 0), as are signs, hexadecimal, octal, inf and nan. A count that is not an
/// integer ("1.5k" is 1500, "1.0001k" is not) or leaves int64 is an error.
///
/// Each function returns the value, or a sentence that says what is wrong and what is accepted, ending
/// without a full stop: "cannot read 'lots' as bytes (like 80GiB)".
template <class T>
using Parsed = std::variant<T, std::string>;

[[nodiscard]] Parsed<Bytes> parse_bytes(std::string_view text);
[[nodiscard]] Parsed<Bandwidth> parse_bandwidth(std::string_view text);
[[nodiscard]] Parsed<FlopRate> parse_flop_rate(std::string_view text);
[[nodiscard]] Parsed<Duration> parse_duration(std::string_view text);
[[nodiscard]] Parsed<std::int64_t> parse_count(std::string_view text);
/// A plain decimal number: optional sign, digits, '.', exponent; finite.
[[nodiscard]] Parsed<double> parse_number(std::string_view text);

}  // namespace ulysim
