#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ulysim::reports {

// Terminal codes, for styles that want colour.
inline constexpr std::string_view kGreen = "\x1b[32m";
inline constexpr std::string_view kYellow = "\x1b[33m";
inline constexpr std::string_view kRed = "\x1b[31m";
inline constexpr std::string_view kBold = "\x1b[1m";
inline constexpr std::string_view kPlain = "\x1b[0m";

/// Columns that UTF-8 text takes (code points; the product prints no wide characters of its own).
[[nodiscard]] std::size_t display_width(std::string_view text);

/// Control characters, and with them terminal escapes that hide in a name, as '?'.
[[nodiscard]] std::string printable(std::string_view text);

/// The typographic signs that the product uses, as ASCII ("×" as "x", "…" as "~": one column each where it stands in a
/// grid); what else is not ASCII as '?'.
[[nodiscard]] std::string to_ascii(std::string_view text);

/// Cut to `width` columns with "…" at its end.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);

/// Lines of at most `width` columns, broken at spaces; later lines start with `indent` spaces, of which there are fewer
/// than `width`. A word that is longer than a line goes on in the next. Every line ends in a newline.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

/// `name`, and from `column` on the text, broken into lines of at most `width` columns; below the name when that is
/// longer than `column` has room for.
[[nodiscard]] std::string item(std::string_view name, std::string_view text, std::size_t column, std::size_t width);

enum class Align { left, right };

struct Column {
  std::string title{};
  Align align{Align::left};
};

/// A cell and what is put around it once it is padded (colour codes take no columns).
struct Cell {
  std::string text{};
  std::string before{};
  std::string after{};
};

/// Columns as wide as their widest cell, two spaces apart, a rule under the titles. When that is wider than `width`,
/// the first column is cut; when that is not enough, the columns that find no room stand in a block below, beside the
/// first one again. No line is wider than `width`, of which 24 are needed.
[[nodiscard]] std::string grid(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                               std::size_t width);

}  // namespace ulysim::reports
