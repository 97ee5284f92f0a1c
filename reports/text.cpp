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

std::string padded(const Cell& cell, std::size_t width, Align align) {
  const std::size_t own = display_width(cell.text);
  const std::string room(width > own ? width - own : 0, ' ');
  const std::string text = cell.before + cell.text + cell.after;
  return align == Align::left ? text + room : room + text;
}

void trim_end(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
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
  std::size_t end = 0;
  for (std::size_t columns = 0; columns + 1 < width; ++columns) {
    end += length_of(text.substr(end));
  }
  return std::string(text.substr(0, end)) + "…";
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
    const std::string_view word = text.substr(at, end - at);
    if (!empty && display_width(line) + 1 + display_width(word) > width) {
      out += line + '\n';
      line = margin;
      empty = true;
    }
    line += empty ? "" : " ";
    line += word;
    empty = false;
    at = text.find_first_not_of(' ', end);
  }
  return out + line + '\n';
}

std::string grid(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows, std::size_t width) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::size_t widest = display_width(columns[c].title);
    for (const auto& row : rows) {
      widest = std::max(widest, display_width(row[c].text));
    }
    widths.push_back(widest);
  }
  std::size_t total = kGap * (columns.size() - 1);
  for (const std::size_t w : widths) {
    total += w;
  }
  if (total > width) {
    const std::size_t over = total - width;
    widths[0] = widths[0] > over + kNarrowestFirst ? widths[0] - over : std::min(widths[0], kNarrowestFirst);
  }
  std::string out;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    std::string line;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      Cell cell = cells[c];
      cell.text = c == 0 ? shortened(cell.text, widths[0]) : cell.text;
      line += std::string(c == 0 ? 0 : kGap, ' ') + padded(cell, widths[c], columns[c].align);
    }
    trim_end(line);
    out += line + '\n';
  };
  std::vector<Cell> titles;
  std::vector<Cell> rules;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    titles.push_back({.text = columns[c].title});
    std::string rule;
    for (std::size_t i = 0; i < widths[c]; ++i) {
      rule += "─";
    }
    rules.push_back({.text = rule});
  }
  add_line(titles);
  add_line(rules);
  for (const auto& row : rows) {
    add_line(row);
  }
  return out;
}

}  // namespace ulysim::reports
