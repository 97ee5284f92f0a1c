#include "reports/text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ulysim::reports {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowestFirst = 8;

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

bool is_control(std::string_view rest) {
  const auto c = static_cast<unsigned char>(rest.front());
  // U+0080 … U+009F are controls too: C2 80 … C2 9F.
  return c < 0x20 || c == 0x7F || (c == 0xC2 && rest.size() > 1 && static_cast<unsigned char>(rest[1]) < 0xA0);
}

std::size_t length_of(std::string_view rest) {
  std::size_t length = 1;
  while (length < rest.size() && continues(rest[length])) {
    ++length;
  }
  return length;
}

/// The first `columns` code points.
std::string_view head_of(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (; columns > 0 && end < text.size(); --columns) {
    end += length_of(text.substr(end));
  }
  return text.substr(0, end);
}

std::string padded(const Cell& cell, std::size_t width, Align align) {
  const std::size_t own = display_width(cell.text);
  const std::string room(width > own ? width - own : 0, ' ');
  const std::string text = cell.before + cell.text + cell.after;
  return align == Align::left ? text + room : room + text;
}

/// One column, laid out.
struct Laid {
  std::size_t index{};
  std::size_t width{};
};

/// As wide as the widest cell, but no wider than `most`.
std::size_t width_of(std::size_t column, const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                     std::size_t most) {
  std::size_t widest = display_width(columns[column].title);
  for (const auto& row : rows) {
    widest = std::max(widest, display_width(row[column].text));
  }
  return std::min(widest, most);
}

void trim_end(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

/// The columns of one block, each row a line.
std::string block(const std::vector<Laid>& laid, const std::vector<Column>& columns,
                  const std::vector<std::vector<Cell>>& rows) {
  std::string out;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (const Laid& column : laid) {
      Cell cell = cell_of(column);
      cell.text = shortened(cell.text, column.width);
      line += std::string(&column == &laid.front() ? 0 : kGap, ' ') +
              padded(cell, column.width, columns[column.index].align);
    }
    trim_end(line);
    out += line + '\n';
  };
  add_line([&](const Laid& column) { return Cell{.text = columns[column.index].title}; });
  add_line([&](const Laid& column) {
    std::string rule;
    for (std::size_t i = 0; i < column.width; ++i) {
      rule += "─";
    }
    return Cell{.text = rule};
  });
  for (const auto& row : rows) {
    add_line([&](const Laid& column) { return row[column.index]; });
  }
  return out;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const std::size_t length = length_of(rest);
    if (is_control(rest)) {
      out += '?';
    } else {
      out += rest.substr(0, length);
    }
    i += length;
  }
  return out;
}

std::string to_ascii(std::string_view text) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Pair, 13> kSigns{Pair{"×", "x"},  Pair{"…", "~"},   Pair{"–", "-"},  Pair{"—", "-"},
                                               Pair{"·", "."},  Pair{"≥", ">="},  Pair{"≤", "<="}, Pair{"─", "-"},
                                               Pair{"→", "->"}, Pair{"±", "+/-"}, Pair{"²", "^2"}, Pair{"µ", "u"},
                                               Pair{"−", "-"}};
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = length_of(text.substr(i));
    const std::string_view sign = text.substr(i, length);
    const auto known = std::find_if(kSigns.begin(), kSigns.end(), [&](const Pair& pair) { return pair.first == sign; });
    if (length == 1 && static_cast<unsigned char>(sign.front()) < 0x80) {
      out += sign;
    } else {
      out += known == kSigns.end() ? "?" : known->second;
    }
    i += length;
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  return width == 0 ? "" : std::string(head_of(text, width - 1)) + "…";
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::string line;
  const std::string margin(indent, ' ');
  bool empty = true;
  std::size_t at = text.find_first_not_of(' ');
  line.append(at == std::string_view::npos ? 0 : at, ' ');
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::string_view word = text.substr(at, end - at);
    if (!empty && display_width(line) + 1 + display_width(word) > width) {
      out += line + '\n';
      line = margin;
      empty = true;
    }
    // A word longer than a line goes on in the next: what is cut off nobody can read.
    while (empty && display_width(line) + display_width(word) > width && display_width(line) < width) {
      const std::string_view begin = head_of(word, width - display_width(line));
      out += line + std::string(begin) + '\n';
      word.remove_prefix(begin.size());
      line = margin;
    }
    line += empty ? "" : " ";
    line += word;
    empty = false;
    at = text.find_first_not_of(' ', end);
  }
  return out + line + '\n';
}

std::string item(std::string_view name, std::string_view text, std::size_t column, std::size_t width) {
  constexpr std::size_t kLeastText = 10;
  if (text.find_first_not_of(' ') == std::string_view::npos) {
    return wrapped(name, width, kGap);
  }
  const std::size_t indent = std::min(column, width > kLeastText ? width - kLeastText : 0);
  const std::string lines = wrapped(std::string(indent, ' ') + std::string(text), width, indent);
  const std::size_t own = display_width(name);
  return own + kGap > indent ? wrapped(name, width, kGap) + lines : std::string(name) + lines.substr(own);
}

std::string grid(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows, std::size_t width) {
  std::vector<std::size_t> widths;
  std::size_t others = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    widths.push_back(width_of(c, columns, rows, width));
    others += c == 0 ? 0 : kGap + widths[c];
  }
  // The first column gives way, down to a quarter of the line; then the others go into blocks below.
  const std::size_t least = std::max(kNarrowestFirst, width / 4);
  widths[0] = std::min(widths[0], std::max(least, width > others ? width - others : 0));
  std::string out;
  std::vector<Laid> laid{{0, widths[0]}};
  std::size_t used = widths[0];
  for (std::size_t c = 1; c < columns.size(); ++c) {
    if (laid.size() > 1 && used + kGap + widths[c] > width) {
      out += block(laid, columns, rows) + '\n';
      laid.resize(1);
      used = widths[0];
    }
    const std::size_t room = width > used + kGap ? width - used - kGap : 1;
    laid.push_back({c, std::min(widths[c], room)});
    used += kGap + laid.back().width;
  }
  return out + block(laid, columns, rows);
}

}  // namespace ulysim::reports
