#include "reports/sweep_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <vector>

#include "reports/text.h"
#include "reports/verdict.h"
#include "sim/base/format.h"

namespace ulysim::reports {
namespace {

using results::SweepAxis;
using results::SweepPlan;
using results::SweepPoint;
using results::SweepResult;

constexpr std::size_t kMostMaps = 12;
constexpr std::size_t kMostRows = 24;
constexpr std::size_t kMostChanges = 8;
constexpr std::size_t kWidestLabel = 16;
constexpr std::size_t kMargin = 2;
constexpr std::size_t kGap = 2;

constexpr char kNothingFits = '.';
constexpr char kNothingRuns = 'x';
constexpr char kMissing = '?';

constexpr std::array<std::string_view, 6> kColours{"\x1b[34m", "\x1b[33m", "\x1b[35m",
                                                   "\x1b[32m", "\x1b[36m", "\x1b[91m"};
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kPlain = "\x1b[0m";

/// "1,048,576" of 1048576; other values as they are.
std::string shown(const std::string& value) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  return error == std::errc{} && end == value.data() + value.size() ? human_count(count) : printable(value);
}

/// A sweep seen as maps: the last axis goes across, the one before it down; each combination of the others is a map.
class Atlas {
 public:
  explicit Atlas(const SweepResult& sweep) : sweep_(sweep), points_(maps() * rows() * columns()) {
    for (const SweepPoint& point : sweep.points) {
      points_[results::number_of(sweep.axes, point.at)] = &point;
    }
  }

  [[nodiscard]] const SweepAxis& across() const { return sweep_.axes.back(); }
  /// nullptr when there is one axis only.
  [[nodiscard]] const SweepAxis* down() const {
    return sweep_.axes.size() > 1 ? &sweep_.axes[sweep_.axes.size() - 2] : nullptr;
  }
  [[nodiscard]] std::size_t columns() const { return across().values.size(); }
  [[nodiscard]] std::size_t rows() const { return down() == nullptr ? 1 : down()->values.size(); }
  [[nodiscard]] std::size_t maps() const {
    std::size_t product = 1;
    for (std::size_t a = 0; a + 2 < sweep_.axes.size(); ++a) {
      product *= sweep_.axes[a].values.size();
    }
    return product;
  }
  /// nullptr where it was not simulated.
  [[nodiscard]] const SweepPoint* at(std::size_t map, std::size_t row, std::size_t column) const {
    return points_[(map * rows() + row) * columns() + column];
  }
  /// "cluster.node dgx-h100, training.zero 3"; empty when there is one map only.
  [[nodiscard]] std::string title(std::size_t map) const {
    std::vector<std::string> parts;
    for (std::size_t a = sweep_.axes.size(); a-- > 2;) {
      const SweepAxis& axis = sweep_.axes[a - 2];
      parts.insert(parts.begin(),
                   fmt::format("{} {}", printable(axis.key), shown(axis.values[map % axis.values.size()])));
      map /= axis.values.size();
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

 private:
  const SweepResult& sweep_;
  std::vector<const SweepPoint*> points_;
};

/// One letter a plan: its first when all differ, else A, B, C ….
std::string letters(const std::vector<std::string>& plans) {
  std::string out;
  for (const std::string& plan : plans) {
    const char c = plan.empty() ? ' ' : plan.front();
    out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  const bool all_letters = std::all_of(out.begin(), out.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (all_letters && std::set<char>(out.begin(), out.end()).size() == out.size()) {
    return out;
  }
  static constexpr std::string_view kMarks = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvw0123456789";
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = i < kMarks.size() ? kMarks[i] : '*';
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
  std::string text = wrapped(fmt::format("  {}", fmt::join(parts, ",  ")), style.width, kMargin);
  return text;
}

std::string map_text(const Atlas& atlas, std::size_t map, const std::string& letters, const Style& style,
                     std::string& used) {
  const SweepAxis& across = atlas.across();
  std::size_t label = 0;
  for (std::size_t row = 0; row < atlas.rows() && atlas.down() != nullptr; ++row) {
    label = std::max(label, std::min(display_width(shown(atlas.down()->values[row])), kWidestLabel));
  }
  const std::size_t left = kMargin + label + (label > 0 ? kGap : 0);
  const std::vector<std::size_t> columns = thinned(atlas.columns(), style.width - left);
  std::string head = fmt::format("across: {}, {}", printable(across.key), shown(across.values.front()));
  if (across.values.size() > 1) {
    head += fmt::format(" to {}", shown(across.values.back()));
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
    const std::string name = atlas.down() == nullptr ? "" : shortened(shown(atlas.down()->values[row]), label);
    out += std::string(left - (label > 0 ? kGap : 0) - display_width(name), ' ') + name +
           std::string(label > 0 ? kGap : 0, ' ') + coloured(marks, letters, style) + '\n';
  }
  return out;
}

std::string maps_text(const SweepResult& sweep, const Atlas& atlas, const Style& style) {
  const std::string marks = letters(sweep.plans);
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

/// Who wins, as words: a plan, or why there is none.
std::string winner_text(const SweepResult& sweep, const SweepPoint* point) {
  if (point == nullptr) {
    return "not simulated";
  }
  if (const auto best = results::winner(*point)) {
    return printable(sweep.plans[*best]);
  }
  return mark_of(point, letters(sweep.plans)) == kNothingFits ? "nothing fits" : "nothing runs";
}

/// "ulysses=all from 16,384, ring=all from 1,032,192, nothing fits from 3,014,656".
std::string changes(const SweepResult& sweep, const Atlas& atlas, std::size_t map, std::size_t row) {
  std::vector<std::string> parts;
  std::string current;
  std::size_t left_out = 0;
  for (std::size_t column = 0; column < atlas.columns(); ++column) {
    const std::string winner = winner_text(sweep, atlas.at(map, row, column));
    if (winner == current) {
      continue;
    }
    current = winner;
    if (parts.size() < kMostChanges) {
      parts.push_back(fmt::format("{} from {}", winner, shown(atlas.across().values[column])));
    } else {
      ++left_out;
    }
  }
  return fmt::format("{}{}", fmt::join(parts, ", "), left_out > 0 ? fmt::format(", … {} more changes", left_out) : "");
}

std::string takeovers(const SweepResult& sweep, const Atlas& atlas, std::size_t width) {
  std::string out = fmt::format("\nWho takes over along {}:\n", printable(atlas.across().key));
  const std::size_t rows = atlas.maps() * atlas.rows();
  for (std::size_t i = 0; i < std::min(rows, kMostRows); ++i) {
    std::vector<std::string> where;
    if (const std::string title = atlas.title(i / atlas.rows()); !title.empty()) {
      where.push_back(title);
    }
    if (atlas.down() != nullptr) {
      where.push_back(
          fmt::format("{} {}", printable(atlas.down()->key), shown(atlas.down()->values[i % atlas.rows()])));
    }
    const std::string text = changes(sweep, atlas, i / atlas.rows(), i % atlas.rows());
    out += wrapped(where.empty() ? "  " + text : fmt::format("  {}: {}", fmt::join(where, ", "), text), width, 4);
  }
  return rows > kMostRows ? out + fmt::format("  … and {} more\n", rows - kMostRows) : out;
}

struct Tally {
  std::size_t wins{};
  std::size_t fits{};
  std::size_t too_large{};
  std::size_t cannot_run{};
};

std::vector<Tally> tallies(const SweepResult& sweep) {
  std::vector<Tally> out(sweep.plans.size());
  for (const SweepPoint& point : sweep.points) {
    if (const auto best = results::winner(point)) {
      ++out[*best].wins;
    }
    for (std::size_t p = 0; p < point.plans.size(); ++p) {
      const SweepPlan& plan = point.plans[p];
      ++(plan.fits() ? out[p].fits : plan.figures ? out[p].too_large : out[p].cannot_run);
    }
  }
  return out;
}

std::string answer(const SweepResult& sweep, const std::vector<Tally>& tally, const Style& style) {
  const auto points = static_cast<double>(std::max<std::size_t>(sweep.points.size(), 1));
  std::vector<std::size_t> order(tally.size());
  std::size_t won = 0;
  for (std::size_t p = 0; p < order.size(); ++p) {
    order[p] = p;
    won += tally[p].wins;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tally[a].wins > tally[b].wins; });
  std::vector<std::string> parts;
  for (const std::size_t p : order) {
    if (tally[p].wins > 0) {
      parts.push_back(fmt::format("{} wins at {}", printable(sweep.plans[p]),
                                  percent(static_cast<double>(tally[p].wins) / points)));
    }
  }
  if (won < sweep.points.size()) {
    parts.push_back(parts.empty() ? "no plan fits at any point"
                                  : fmt::format("nothing fits at {}",
                                                percent(static_cast<double>(sweep.points.size() - won) / points)));
  }
  std::string text = wrapped(fmt::format("{}", fmt::join(parts, ", ")), style.width, kMargin);
  if (style.colour) {
    text.pop_back();
    text = fmt::format("{}{}{}{}\n", kBold, won > 0 ? "\x1b[32m" : "\x1b[31m", text, kPlain);
  }
  return text;
}

std::string plans_table(const SweepResult& sweep, const std::vector<Tally>& tally, std::size_t width) {
  std::vector<std::vector<Cell>> rows;
  const auto count = [](std::size_t value) { return Cell{.text = human_count(static_cast<std::int64_t>(value))}; };
  for (std::size_t p = 0; p < sweep.plans.size(); ++p) {
    rows.push_back({{.text = printable(sweep.plans[p])},
                    count(tally[p].wins),
                    count(tally[p].fits),
                    count(tally[p].too_large),
                    count(tally[p].cannot_run)});
  }
  return grid({{.title = "plan"},
               {.title = "wins", .align = Align::right},
               {.title = "fits", .align = Align::right},
               {.title = "too large", .align = Align::right},
               {.title = "can't run", .align = Align::right}},
              rows, width);
}

std::string head(const SweepResult& sweep) {
  std::vector<std::string> axes;
  for (const SweepAxis& axis : sweep.axes) {
    axes.push_back(fmt::format("{} {}", human_count(static_cast<std::int64_t>(axis.values.size())), axis.key));
  }
  return fmt::format("{}: {} points ({}), {} plans", sweep.name,
                     human_count(static_cast<std::int64_t>(sweep.points.size())), fmt::join(axes, " × "),
                     sweep.plans.size());
}

}  // namespace

std::string sweep_text(const SweepResult& sweep, const Style& style) {
  const std::vector<Tally> tally = tallies(sweep);
  const Atlas atlas(sweep);
  return wrapped(printable(head(sweep)), style.width, kMargin) + answer(sweep, tally, style) + '\n' +
         plans_table(sweep, tally, style.width) + maps_text(sweep, atlas, style) + takeovers(sweep, atlas, style.width);
}

}  // namespace ulysim::reports
