#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ulysim::calibration {

/// A line without its end; numbered from 1.
struct Line {
  int number{};
  std::string_view text{};
};

/// '\n', '\r\n' and a last line without an end are all lines; an empty text has none.
[[nodiscard]] std::vector<Line> lines_of(std::string_view text);

/// Parts between spaces and tabs.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view line);
/// Parts between `separator`, each trimmed of spaces and tabs; empty ones count.
[[nodiscard]] std::vector<std::string_view> cells_of(std::string_view line, char separator);
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Digits only, within int64.
[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view text);

/// A number as somebody printed it: the true one lies within ± half of its last digit.
struct Printed {
  double value{};
  double half{};
};

/// Plain decimal, unsigned, perhaps with an exponent, finite: "58.14", "1e+06". No nan, inf, hexadecimal.
[[nodiscard]] std::optional<Printed> printed_number(std::string_view text);

/// Bytes of an element of a type as nccl-tests and PyTorch call it: "float", "BFloat16", "c10::BFloat16".
[[nodiscard]] std::optional<std::int64_t> element_bytes(std::string_view type);

/// A user's name as printable ASCII on one line; '?' for every other byte. Tables and JSON take it as it is.
[[nodiscard]] std::string printable(std::string_view name);

/// What a message shows of a foreign text: cut, and without control characters.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace ulysim::calibration
