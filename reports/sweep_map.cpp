#include "reports/sweep_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "reports/text.h"
#include "sim/base/format.h"

namespace ulysim::reports {
namespace {

using results::SweepAxis;
using results::SweepPlan;
using results::SweepPoint;
using results::SweepResult;

constexpr std::size_t kMostMaps = 12;
constexpr std::size_t kWidestLabel = 16;
constexpr std::size_t kMargin = 2;
constexpr std::size_t kGap = 2;

constexpr std::array<std::string_view, 6> kColours{"\x1b[34m", "\x1b[33m", "\x1b[35m",
                                                   "\x1b[32m", "\x1b[36m", "\x1b[91m"};

std::string coloured(std::string_view marks, const std::string& letters, const Style& style) {
  if (!style.colour) {
    return std::string(marks);
  }
  std::string out;
  for (const char mark : marks) {
    const std::size_t plan = letters.find(mark);
    out += plan == std::string::npos ? std::string(1, mark)
                                     : fmt::format("{}{}{}", kColours.at(plan % kColours.size()), mark, kPlain);
  }
  return out;
}

/// Which of `count` values are shown in at most `room` columns: evenly spread, the first and the last among them.
std::vector<std::size_t> thinned(std::size_t count, std::size_t room) {
  std::vector<std::size_t> shown_at(std::min(count, std::max<std::size_t>(room, 2)));
  for (std::size_t i = 0; i < shown_at.size(); ++i) {
    shown_at[i] = shown_at.size() == 1 ? 0 : i * (count - 1) / (shown_at.size() - 1);
  }
  return shown_at;
}

std::string legend(const SweepResult& sweep, const std::string& letters, const std::string& used, const Style& style) {
  std::vector<std::string> parts;
  for (std::size_t p = 0; p < sweep.plans.size(); ++p) {
    parts.push_back(fmt::format("{} {}", letters[p], printable(sweep.plans[p])));
  }
  const auto add = [&](char mark, const char* words) {
    if (used.find(mark) != std::string::npos) {
      parts.push_back(fmt::format("{} {}", mark, words));
    }
  };
  add(kNothingFits, "no plan fits");
  add(kNothingRuns, "no plan can run");
  add(kMissing, "not simulated");
  return wrapped(fmt::format("  {}", fmt::join(parts, ", ")), style.width, kMargin);
}

std::string map_text(const Atlas& atlas, std::size_t map, const std::string& letters, const Style& style,
                     std::string& used) {
  const SweepAxis& across = atlas.across();
  std::size_t label = 0;
  for (std::size_t row = 0; row < atlas.rows() && atlas.down() != nullptr; ++row) {
    label = std::max(label, std::min(display_width(shown_value(atlas.down()->values[row])), kWidestLabel));
  }
  const std::size_t left = kMargin + label + (label > 0 ? kGap : 0);
  const std::vector<std::size_t> columns = thinned(atlas.columns(), style.width - left);
  std::string head = fmt::format("across: {}, {}", printable(across.key), shown_value(across.values.front()));
  if (across.values.size() > 1) {
    head += fmt::format(" to {}", shown_value(across.values.back()));
  }
  if (columns.size() < atlas.columns()) {
    head += fmt::format(" ({} of {} values)", columns.size(), atlas.columns());
  }
  if (atlas.down() != nullptr) {
    head = fmt::format("down: {}; {}", printable(atlas.down()->key), head);
  }
  std::string out =
      wrapped(atlas.title(map).empty() ? head : fmt::format("{}: {}", atlas.title(map), head), style.width, kMargin);
  for (std::size_t row = 0; row < atlas.rows(); ++row) {
    std::string marks;
    for (const std::size_t column : columns) {
      marks += mark_of(atlas.at(map, row, column), letters);
    }
    used += marks;
    const std::string name = atlas.down() == nullptr ? "" : shortened(shown_value(atlas.down()->values[row]), label);
    out += std::string(left - (label > 0 ? kGap : 0) - display_width(name), ' ') + name +
           std::string(label > 0 ? kGap : 0, ' ') + coloured(marks, letters, style) + '\n';
  }
  return out;
}

}  // namespace

std::string shown_value(const std::string& value) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  return error == std::errc{} && end == value.data() + value.size() ? human_count(count) : printable(value);
}

std::string Atlas::title(std::size_t map) const {
  std::vector<std::string> parts;
  for (std::size_t a = sweep_.axes.size(); a-- > 2;) {
    const results::SweepAxis& axis = sweep_.axes[a - 2];
    parts.insert(parts.begin(),
                 fmt::format("{} {}", printable(axis.key), shown_value(axis.values[map % axis.values.size()])));
    map /= axis.values.size();
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string plan_letters(const std::vector<std::string>& plans) {
  static constexpr std::string_view kOthers = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvw0123456789";
  std::string out;
  for (const std::string& plan : plans) {
    std::string wanted;
    for (const char c : plan) {
      wanted += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    const auto is_free = [&](char c) {
      return kOthers.find(c) != std::string_view::npos && out.find(c) == std::string::npos;
    };
    wanted += kOthers;
    const auto found = std::find_if(wanted.begin(), wanted.end(), is_free);
    out += found == wanted.end() ? '*' : *found;
  }
  return out;
}

char mark_of(const SweepPoint* point, const std::string& letters) {
  if (point == nullptr) {
    return kMissing;
  }
  if (const auto best = results::winner(*point)) {
    return letters[*best];
  }
  const bool runs = std::any_of(point->plans.begin(), point->plans.end(),
                                [](const SweepPlan& plan) { return plan.figures.has_value(); });
  return runs ? kNothingFits : kNothingRuns;
}

std::string winner_maps(const SweepResult& sweep, const Atlas& atlas, const Style& style) {
  const std::string marks = plan_letters(sweep.plans);
  std::string used;
  std::string maps;
  for (std::size_t map = 0; map < std::min(atlas.maps(), kMostMaps); ++map) {
    maps += '\n' + map_text(atlas, map, marks, style, used);
  }
  if (atlas.maps() > kMostMaps) {
    maps += fmt::format("\n… and {} more maps\n", atlas.maps() - kMostMaps);
  }
  return "\nThe fastest plan that fits:\n" + legend(sweep, marks, used, style) + maps;
}

}  // namespace ulysim::reports
