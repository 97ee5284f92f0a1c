#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/writer.h"

namespace ulysim::reports {

// What a map shows where no plan wins.
inline constexpr char kNothingFits = '.';
inline constexpr char kNothingRuns = 'x';
inline constexpr char kMissing = '?';

/// A sweep seen as maps: the last axis goes across, the one before it down; each combination of the others is a map.
class Atlas {
 public:
  explicit Atlas(const results::SweepResult& sweep) : sweep_(sweep), points_(maps() * rows() * columns()) {
    for (const results::SweepPoint& point : sweep.points) {
      points_[results::number_of(sweep.axes, point.at)] = &point;
    }
  }

  [[nodiscard]] const results::SweepAxis& across() const { return sweep_.axes.back(); }
  /// nullptr when there is one axis only.
  [[nodiscard]] const results::SweepAxis* down() const {
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
  [[nodiscard]] const results::SweepPoint* at(std::size_t map, std::size_t row, std::size_t column) const {
    return points_[(map * rows() + row) * columns() + column];
  }
  /// "cluster.node dgx-h100, training.zero 3"; empty when there is one map only.
  [[nodiscard]] std::string title(std::size_t map) const;

 private:
  const results::SweepResult& sweep_;
  std::vector<const results::SweepPoint*> points_;
};

/// "1,048,576" of 1048576; other values as they are.
[[nodiscard]] std::string shown_value(const std::string& value);

/// One sign a plan: the first letter of its name that no plan before it has (U, R, S of ulysses, ring, usp).
[[nodiscard]] std::string plan_letters(const std::vector<std::string>& plans);

/// The letter of the plan that wins, or why there is none.
[[nodiscard]] char mark_of(const results::SweepPoint* point, const std::string& letters);

/// Maps of the winners with their legend.
[[nodiscard]] std::string winner_maps(const results::SweepResult& sweep, const Atlas& atlas, const Style& style);

}  // namespace ulysim::reports
