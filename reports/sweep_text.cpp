#include "reports/sweep_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "reports/sweep_map.h"
#include "reports/text.h"
#include "reports/verdict.h"
#include "sim/base/format.h"

namespace ulysim::reports {
namespace {

using results::SweepAxis;
using results::SweepPlan;
using results::SweepPoint;
using results::SweepResult;

constexpr std::size_t kMostRows = 24;
constexpr std::size_t kMostChanges = 8;
constexpr std::size_t kMargin = 2;

/// Who wins, as words: a plan, or why there is none.
std::string winner_text(const SweepResult& sweep, const SweepPoint* point) {
  if (point == nullptr) {
    return "not simulated";
  }
  if (const auto best = results::winner(*point)) {
    return printable(sweep.plans[*best]);
  }
  return mark_of(point, plan_letters(sweep.plans)) == kNothingFits ? "nothing fits" : "nothing runs";
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
      parts.push_back(fmt::format("{} from {}", winner, shown_value(atlas.across().values[column])));
    } else {
      ++left_out;
    }
  }
  return fmt::format("{}{}", fmt::join(parts, ", "), left_out > 0 ? fmt::format(", … {} more changes", left_out) : "");
}

std::string takeovers(const SweepResult& sweep, const Atlas& atlas, std::size_t width) {
  std::string out =
      '\n' + wrapped(fmt::format("Who takes over along {}:", printable(atlas.across().key)), width, kMargin);
  const std::size_t rows = atlas.maps() * atlas.rows();
  for (std::size_t i = 0; i < std::min(rows, kMostRows); ++i) {
    std::vector<std::string> where;
    if (const std::string title = atlas.title(i / atlas.rows()); !title.empty()) {
      where.push_back(title);
    }
    if (atlas.down() != nullptr) {
      where.push_back(
          fmt::format("{} {}", printable(atlas.down()->key), shown_value(atlas.down()->values[i % atlas.rows()])));
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
  if (parts.empty()) {
    parts.emplace_back("no plan fits at any point");
  } else if (won < sweep.points.size()) {
    parts.push_back(
        fmt::format("nothing fits at {}", percent(static_cast<double>(sweep.points.size() - won) / points)));
  }
  std::string text = wrapped(fmt::format("{}", fmt::join(parts, ", ")), style.width, kMargin);
  if (style.colour) {
    text.pop_back();
    text = fmt::format("{}{}{}{}\n", kBold, won > 0 ? kGreen : kRed, text, kPlain);
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
  return fmt::format("{}: {} points ({}), {} plan{}", sweep.name,
                     human_count(static_cast<std::int64_t>(sweep.points.size())), fmt::join(axes, " × "),
                     sweep.plans.size(), sweep.plans.size() == 1 ? "" : "s");
}

}  // namespace

std::string sweep_text(const SweepResult& sweep, const Style& style) {
  const std::vector<Tally> tally = tallies(sweep);
  const Atlas atlas(sweep);
  return wrapped(printable(head(sweep)), style.width, kMargin) + answer(sweep, tally, style) + '\n' +
         plans_table(sweep, tally, style.width) + winner_maps(sweep, atlas, style) +
         takeovers(sweep, atlas, style.width);
}

}  // namespace ulysim::reports
